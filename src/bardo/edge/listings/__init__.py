"""Providers' lists of models, kept on disk and laid between what servers say live and the rows that come with bardo."""

from bardo.edge.listings.check import Change, changes
from bardo.edge.listings.listings import Listings, source_of
from bardo.edge.listings.refresh import CatalogRefresh, HourlyRefresh, Outcome, askable
from bardo.edge.listings.rows import ListingSource, listing_sources
from bardo.edge.listings.store import ListingStore
from bardo.edge.listings.values import ListedModel, ListedPrice, ListedRates, Listing

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
