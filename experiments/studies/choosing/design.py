"""What is compared: bases, sizes, variants and settings, fixed before anything was measured (see DESIGN.md)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

PICTURES, WORDS, ENCODER = "pictures", "words", "encoder"
DOMAINS = (PICTURES, WORDS, ENCODER)  # texts are seen twice: as counted words and through a sentence encoder

_PICTURES = (
    "mnist", "fashion_mnist", "kmnist", "emnist_letters", "usps", "cifar10", "tiny_imagenet", "arabic_chars",
    "chars74k_font", "coil20", "flowers5", "fruits360", "gtsrb", "kannada_mnist", "malaria_cells", "notmnist",
    "omniglot_alphabets", "oracle_mnist", "pneumoniamnist", "quickdraw6", "sign_digits",
)  # fmt: skip
_TEXTS = (
    "ag_news", "dbpedia", "amazon_full", "yelp_full", "imdb", "acl_arc", "airline_tweets", "atis", "banking77",
    "clickbait", "clinc150", "cola", "covid_fake", "cr", "disaster_tweets", "emotion", "financial_phrasebank",
    "goemotions", "liar", "mag_fields", "mr", "newsgroups20", "ohsumed", "poem_sentiment", "r8", "search_snippets",
    "sms_spam", "snips", "subj", "tos_clauses", "trec", "tweet_emoji", "tweet_emotion", "tweet_irony",
    "tweet_sentiment",
)  # fmt: skip
BASES = {PICTURES: _PICTURES, WORDS: _TEXTS, ENCODER: _TEXTS}
# Sources of these bases come in variants too, kept apart in the analysis.
VARIED = {
    PICTURES: ("mnist", "fashion_mnist", "cifar10", "notmnist", "quickdraw6", "sign_digits"),
    WORDS: ("ag_news", "amazon_full", "banking77", "clickbait", "newsgroups20", "snips", "trec", "tweet_sentiment"),
}
VARIED[ENCODER] = VARIED[WORDS]
VARIANTS = ("quarter", "half wrong", "all wrong")

SOURCE_SIZES = {PICTURES: (300, 600, 1200), WORDS: (250, 500, 1000)}
SOURCE_SIZES[ENCODER] = SOURCE_SIZES[WORDS]
SOURCE_CLASSES, TARGET_CLASSES = 20, 8  # at most
POOL, TESTED = 40, 320  # examples of a target: of each class to learn from, and of all classes to test on
SHOTS = (10, 40)
SETTINGS = tuple(f"{how}{shots}" for how in ("frozen", "tuned") for shots in SHOTS)
SHORTLISTS = (3, 5, 10)


@dataclass(frozen=True)
class Effort:
    """How much is done: seeds, steps of training, and the points and projections of distances."""

    seeds: int = 5
    source_steps: int = 1000
    tuning_steps: int = 100
    head_steps: int = 100
    batch: int = 64
    width: int = 32
    bases: int | None = None
    projections: int = 2000
    slow_points: int = 250
    permutations: int = 999


EFFORTS = {
    "full": Effort(),
    "smallest": Effort(
        seeds=2, source_steps=2, tuning_steps=2, head_steps=2, batch=8, width=4, bases=4, projections=16,
        slow_points=20, permutations=9,
    ),
}  # fmt: skip


def seed_of(name: str) -> int:
    """A seed that is the same in every run."""
    return zlib.crc32(name.encode())


def source_size(domain: str, base: str) -> int:
    """How many examples a source has at most: three sizes, dealt to the bases in a random order."""
    bases, sizes = BASES[domain], SOURCE_SIZES[domain]
    order = np.random.default_rng(34).permutation(len(bases))
    return sizes[int(order[bases.index(base)]) % len(sizes)]
