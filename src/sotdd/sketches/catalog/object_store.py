"""Catalogs in an object store: how LanceDB is to reach it, and what is said where it cannot."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

# LanceDB knows an option of S3 by several names, and prefers one in the environment where two of them meet. Under its
# first name, what was passed counts.
_FIRST_NAMES = {
    **dict.fromkeys(("endpoint", "endpoint_url", "aws_endpoint_url"), "aws_endpoint"),
    **{name: f"aws_{name}" for name in ("access_key_id", "secret_access_key", "session_token", "region")},
    "aws_allow_http": "allow_http",
}
# What LanceDB's errors hold, what that means, and what to do about it; the first that is found counts.
_FAULTS = (
    (r"No object store provider found", "this kind of URL is not known", "expected s3://, gs:// or az://, or a folder"),
    (
        r"did not match any known pattern|no Azure account name",
        "the URL is not complete",
        "expected one like s3://BUCKET/FOLDER; see also storage_options",
    ),
    (r"NoSuchBucket", "there is no such bucket", "check its name, or create it first"),
    (
        r"Failed to get AWS credentials|TokenRequest|CredentialsNotLoaded",
        "no credentials were found",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or what your store has in their place, or pass "
        "storage_options",
    ),
    (
        r"InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|status: 40[13]|40[13] (Forbidden|Unauthorized)",
        "the store refused the credentials",
        "check them, and whether they may list, read and write there",
    ),
    (
        r"kind: Connect|error sending request|dns error|tcp connect error",
        "the store cannot be reached",
        "check the network and the endpoint (AWS_ENDPOINT_URL, or endpoint in storage_options)",
    ),
)


def is_remote(location: str) -> bool:
    """Whether this is the URL of a folder in an object store."""
    return "://" in location


def connection_options(location: str, options: Mapping[str, str] | None) -> dict[str, str] | None:
    """LanceDB's ``storage_options``; whoever names an endpoint with http:// means it, so that need not be said twice.

    Examples
    --------
    >>> from sotdd.sketches.catalog.object_store import connection_options
    >>> connection_options("s3://bucket/shop", {"endpoint": "http://localhost:9000"})
    {'aws_endpoint': 'http://localhost:9000', 'allow_http': 'true'}
    """
    if not location.startswith(("s3://", "s3+ddb://")):
        return None if options is None else dict(options)
    given = _by_first_names(options or {})
    known = {**_by_first_names(os.environ), **given}
    if known.get("aws_endpoint", "").lower().startswith("http://") and "allow_http" not in known:
        given["allow_http"] = "true"
    return given or None


def _by_first_names(options: Mapping[str, str]) -> dict[str, str]:
    lower = {name.lower(): value for name, value in options.items()}
    return {_FIRST_NAMES.get(name, name): value for name, value in lower.items()}


def fault_of_store(text: str) -> tuple[str, str] | None:
    """What went wrong with a store, by the words of LanceDB, and what to do about it; None where it is another fault.

    Examples
    --------
    >>> from sotdd.sketches.catalog.object_store import fault_of_store
    >>> fault_of_store("... <Code>NoSuchBucket</Code> ...")
    ('there is no such bucket', 'check its name, or create it first')
    """
    return next(((cause, advice) for words, cause, advice in _FAULTS if re.search(words, text)), None)
