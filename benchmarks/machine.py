"""The machine and the versions that figures belong to, and how much others used the machine meanwhile."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

_TICK = os.sysconf("SC_CLK_TCK")
OWN_PACKAGES = ("bardo", "aiohttp", "httptools", "uvicorn", "uvloop", "msgspec", "sqlalchemy", "openai")
BUSY_PERCENT = 15.0


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where figures come from. Loads are averages of the last minute."""

    processor: str
    cores: int
    system: str
    python: str
    load_before: float
    load_after: float
    others_percent: float
    stolen_percent: float
    seconds: float

    def notes(self) -> list[str]:
        """Return what a reader must know before believing a figure."""
        told = [
            f"{self.processor}, {self.cores} cores, {self.system}, {self.python}; load average {self.load_before:.2f} "
            f"before and {self.load_after:.2f} after; {self.seconds:.0f} s"
        ]
        if self.others_percent > BUSY_PERCENT or self.stolen_percent > 1:
            told.append(
                f"**The machine was busy**: other programs used {self.others_percent:.0f} % of its processor time, and "
                f"{self.stolen_percent:.1f} % was withheld by its host. Believe ratios before times."
            )
        return told


class Watch:
    """Watches the machine from its making on."""

    def __init__(self) -> None:
        self._load = os.getloadavg()[0]
        self._began = time.monotonic()
        self._busy, self._stolen, self._total = _processor_seconds()
        self._own = _own_seconds()

    def machine(self) -> Machine:
        """Return the machine, with what happened on it since. What bardo's own runs used counts once they have ended."""
        busy, stolen, total = _processor_seconds()
        passed = max(total - self._total, 1e-9)
        others = busy - self._busy - (_own_seconds() - self._own)
        return Machine(
            processor=_processor(),
            cores=os.cpu_count() or 1,
            system=f"{platform.system()} {platform.release()}",
            python=f"{platform.python_implementation()} {platform.python_version()}",
            load_before=self._load,
            load_after=os.getloadavg()[0],
            others_percent=max(0.0, 100 * others / passed),
            stolen_percent=100 * (stolen - self._stolen) / passed,
            seconds=time.monotonic() - self._began,
        )


def own_versions() -> dict[str, str]:
    """Return the versions of bardo and of what it stands on, as far as they are installed."""
    found = {}
    for name in OWN_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _processor_seconds() -> tuple[float, float, float]:
    """Return busy, stolen and total seconds of all cores since the machine's start."""
    line = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    user, nice, system, idle, waiting, hard, soft, stolen = (int(field) / _TICK for field in line)
    busy = user + nice + system + hard + soft
    return busy, stolen, busy + idle + waiting + stolen


def _own_seconds() -> float:
    return sum(os.times()[:4])
