"""The tests of check digits that rows of patterns name."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from bardo.context.privacy import checks, national, national_europe
from bardo.context.privacy.checks import Check

_NAMES: Mapping[ModuleType, str] = {
    checks: "luhn card aba_routing verhoeff mod_11_10 wallet ip_address mac_address uuid",
    national: "au_abn au_acn au_medicare au_tfn br_cnpj br_cpf cn_id dea in_aadhaar "
    "kr_brn kr_driver kr_rrn kr_rrn_checked ph_tin sg_nric sg_uen "
    "th_id us_npi us_ssn za_id",
    national_europe: "ch_ahv de_document de_kvnr de_lanr de_pension de_tax_id es_letter fi_hetu "
    "fr_nir it_fiscal_code nl_bsn pl_pesel se_company se_person tr_id uk_nhs uk_plate",
}
CHECKS: Mapping[str, Check] = {
    name: getattr(module, name) for module, names in _NAMES.items() for name in names.split()
}
"""A function for each name: it takes the text of a match."""
