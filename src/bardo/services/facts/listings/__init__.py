"""Providers' lists of models, kept on disk and laid between what servers say live and the rows that come with bardo."""

from bardo.services.facts.listings.listings import CatalogRefresh, HourlyRefresh, Listings, Outcome, askable, source_of
from bardo.services.facts.listings.read import Change, changes
from bardo.services.facts.listings.rows import (
    ListedModel,
    ListedPrice,
    ListedRates,
    Listing,
    ListingSource,
    listing_sources,
)
from bardo.services.facts.listings.store import ListingStore

__all__ = [
    "CatalogRefresh",
    "Change",
    "HourlyRefresh",
    "ListedModel",
    "ListedPrice",
    "ListedRates",
    "Listing",
    "ListingSource",
    "ListingStore",
    "Listings",
    "Outcome",
    "askable",
    "changes",
    "listing_sources",
    "source_of",
]
