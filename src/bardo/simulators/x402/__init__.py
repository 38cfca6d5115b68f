"""Providers that are paid by each call: x402's resource server, its facilitator, and the network that holds the books.

    network = SimulatedNetwork()
    with PaidSimulator("openai_chat", network, "bad-gateway-after-settling").running() as seller:
        ...  # pay it, then look at network.transfers

Signatures are verified with `eth-account` where that is installed; elsewhere only their form is looked at.
"""

from bardo.simulators.x402.authorization import Authorization, PaymentTerms
from bardo.simulators.x402.network import SimulatedNetwork, Transfer
from bardo.simulators.x402.seller import SELLER_BEHAVIOURS, PaidSimulator, SellerBehaviour

__all__ = [
    "SELLER_BEHAVIOURS",
    "Authorization",
    "PaidSimulator",
    "PaymentTerms",
    "SellerBehaviour",
    "SimulatedNetwork",
    "Transfer",
]
