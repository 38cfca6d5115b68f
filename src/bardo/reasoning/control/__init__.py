"""Reasoning control: a policy in the form one model honours, what was observed of it, and what goes with it."""

from bardo.reasoning.control.parameters import Fitted, fit_messages, fit_parameters, in_words
from bardo.reasoning.control.plan import CannotTurnOff, ControlPlan, intent_of, untold
from bardo.reasoning.control.planning import as_told, plan_reasoning
from bardo.reasoning.control.refusals import Repair, RouteFact, repair_refusal
from bardo.reasoning.control.target import (
    PORTABLE,
    ControlTarget,
    Layer,
    PortableBudgets,
    ResolvedFacts,
    know,
    nearest_level,
)
from bardo.reasoning.control.verdict import Observation, Verdict, observation, observe, receipt, receipt_header
from bardo.values.request import OnImpossible

__all__ = [
    "PORTABLE",
    "CannotTurnOff",
    "ControlPlan",
    "ControlTarget",
    "Fitted",
    "Layer",
    "Observation",
    "OnImpossible",
    "PortableBudgets",
    "Repair",
    "ResolvedFacts",
    "RouteFact",
    "Verdict",
    "as_told",
    "fit_messages",
    "fit_parameters",
    "in_words",
    "intent_of",
    "know",
    "nearest_level",
    "observation",
    "observe",
    "plan_reasoning",
    "receipt",
    "receipt_header",
    "repair_refusal",
    "untold",
]
