"""The inference log: one row a call, appended and never changed.

`LogWriter` takes rows from the event loop and stores them from a thread of its own; `LogReader` reads them back. Both
take a file (SQLite) or a database address such as `postgresql+psycopg://…`: one schema, two engines.

Importing this package is cheap. The database library loads when a log is opened.
"""

from bardo.adapters.stores.database.problems import AmbiguousRequest, LogMissing, LogNewer, LogProblem, LogUnusable
from bardo.adapters.stores.log.reader import LogReader
from bardo.adapters.stores.log.rollup import CallSums, CostGroup, Dimension
from bardo.adapters.stores.log.row import CallOutcome, Feedback, LogGap, LogRow, NewRows, PendingCall
from bardo.adapters.stores.log.writer import LogWriter

__all__ = [
    "AmbiguousRequest",
    "CallOutcome",
    "CallSums",
    "CostGroup",
    "Dimension",
    "Feedback",
    "LogGap",
    "LogMissing",
    "LogNewer",
    "LogProblem",
    "LogReader",
    "LogRow",
    "LogUnusable",
    "LogWriter",
    "NewRows",
    "PendingCall",
]
