"""What is run: families, sizes, designs and seeds, fixed before anything was measured (see DESIGN.md)."""

from __future__ import annotations

PICTURES = (
    "mnist", "usps", "kmnist", "fashion_mnist", "kannada_mnist", "notmnist", "emnist_letters", "sign_digits",
    "arabic_chars",
)  # fmt: skip
TEXTS = (
    "atis", "banking77", "clickbait", "cola", "mag_fields", "newsgroups20", "ohsumed", "r8", "snips", "trec",
)  # fmt: skip
TWEETS = (
    "airline_tweets", "covid_fake", "disaster_tweets", "emotion", "tweet_emoji", "tweet_emotion", "tweet_irony",
    "tweet_sentiment",
)  # fmt: skip
FAMILIES = (
    "picture sets", "mnist classes", "fashion classes", "cifar10 classes", "text sets", "tweets", "newsgroups",
    "dbpedia classes", "ag_news classes", "adult occupations", "diamonds clarity", "diamonds cut", "fifty", "twins",
)  # fmt: skip
SIZES = (500, 2000)
DESIGNS = {"30/50/20": (0.3, 0.5, 0.2), "single": (1.0,), "95/5": (0.95, 0.05)}
FOREIGN = (0.0, 0.05, 0.1, 0.2)  # of targets by the first design
SEEDS, SEEDS_OF_MANY = 3, 2
PROJECTIONS = 256

SHIFT = ("mnist classes", "fashion classes", "newsgroups")
SHIFT_ROWS, SHIFT_BATCH, SHIFT_SEEDS = 2000, 300, 8

REVIEWS = ("amazon", "yelp", "imdb", "mr", "cr", "airline_tweets", "tweet_sentiment", "financial_phrasebank")
TRAINED, TESTED, TRAINING_SEEDS = 1000, 1000, 5
SOURCE_ROWS, TARGET_ROWS = 1000, 500
