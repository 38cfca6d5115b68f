"""Signatures for AWS: those of Amazon's published test suite, and those botocore makes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest

from bardo.adapters.net.aws import Credentials, Scope, authorize, find_credentials, scope_of, sign
from bardo.values.errors import ConfigError, MissingKey

pytestmark = pytest.mark.each_python

NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()
KEYS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SUITE = Scope("us-east-1", "service")
HOST = "https://example.amazonaws.com"
PAIR = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s3cret"}
CONVERSE = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.anthropic.claude-3-7%3A0/converse"


def signature(method: str, url: str, headers: dict[str, str] | None = None, body: bytes = b"") -> str:
    made = sign(method, url, headers or {}, body, credentials=KEYS, scope=SUITE, now=NOW)
    return made["authorization"].rpartition("Signature=")[2]


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("GET", "/", {}, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", {}, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            {},
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        ("GET", "/./", {}, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "/example/..", {}, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "//", {}, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", {"My-Header1": "value1"}, "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
    ],
    ids=["get-vanilla", "post-vanilla", "query-order", "slash-dot", "relative", "slashes", "header-key-case"],
)
def test_the_published_vectors(method: str, path: str, headers: dict[str, str], expected: str) -> None:
    assert signature(method, HOST + path, headers) == expected


def test_the_example_of_the_documentation() -> None:
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    url = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"
    made = sign("GET", url, headers, b"", credentials=KEYS, scope=Scope("us-east-1", "iam"), now=NOW)
    assert made == {
        "x-amz-date": "20150830T123600Z",
        "authorization": (
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-date, "
            "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        ),
    }


@pytest.mark.parametrize("session", ["", "token/with+signs=="])
@pytest.mark.parametrize(
    "url",
    [
        CONVERSE,
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-micro-v1:0/converse-stream",
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprofile%2Fx/invoke",
        "https://bedrock-runtime.us-east-1.amazonaws.com:8443/model/a/invoke?b=2&a=%20x&a=",
        "http://127.0.0.1:4000/prefix/model/m/converse",
    ],
    ids=["encoded", "colon", "arn", "port-and-query", "loopback"],
)
def test_botocore_signs_the_same(url: str, session: str) -> None:
    auth = pytest.importorskip("botocore.auth")
    request_type = pytest.importorskip("botocore.awsrequest").AWSRequest
    credentials_type = pytest.importorskip("botocore.credentials").Credentials
    headers = {"Content-Type": "application/json", "Accept": "*/*", "X-Odd": "  two   spaces "}
    body = b'{"messages":[]}'
    theirs: Any = request_type(method="POST", url=url, data=body, headers=headers)
    signer = auth.SigV4Auth(credentials_type(KEYS.key_id, KEYS.secret, session or None), "bedrock", "us-east-1")
    moment = datetime.fromtimestamp(NOW, UTC)
    with patch.object(auth, "get_current_datetime", lambda: moment.replace(tzinfo=None)):
        signer.add_auth(theirs)
    keys = Credentials(KEYS.key_id, KEYS.secret, session)
    ours = sign("POST", url, headers, body, credentials=keys, scope=Scope("us-east-1"), now=NOW)
    assert ours["authorization"] == theirs.headers["Authorization"]
    assert ours["x-amz-date"] == theirs.headers["X-Amz-Date"]
    assert ours.get("x-amz-security-token") == theirs.headers.get("X-Amz-Security-Token")


def test_a_bearer_token_goes_before_a_key_pair() -> None:
    environment = {**PAIR, "AWS_BEARER_TOKEN_BEDROCK": " token \n"}
    made = authorize("POST", CONVERSE, {}, b"{}", environment=environment, now=NOW)
    assert made == {"authorization": "Bearer token"}


def test_a_key_pair_signs_for_the_region_of_the_address() -> None:
    made = authorize("POST", CONVERSE, {}, b"{}", environment=PAIR, now=NOW)
    assert "/20150830/eu-west-1/bedrock/aws4_request" in made["authorization"]
    other = authorize("POST", CONVERSE, {}, b"{ }", environment=PAIR, now=NOW)
    assert made["authorization"] != other["authorization"]


def test_a_session_sends_its_token_and_signs_it() -> None:
    made = authorize("POST", CONVERSE, {}, b"", environment={**PAIR, "AWS_SESSION_TOKEN": "st"}, now=NOW)
    assert made["x-amz-security-token"] == "st"
    assert "host;x-amz-date;x-amz-security-token" in made["authorization"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("bedrock-runtime.us-east-1.amazonaws.com", Scope("us-east-1", "bedrock")),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Scope("us-gov-west-1", "bedrock")),
        ("bedrock-runtime.cn-north-1.amazonaws.com.cn", Scope("cn-north-1", "bedrock")),
        ("bedrock.ap-southeast-2.amazonaws.com", Scope("ap-southeast-2", "bedrock")),
        ("bedrock-runtime.eu-west-1.api.aws", Scope("eu-west-1", "bedrock")),
        ("bedrock-mantle.eu-west-1.api.aws", Scope("eu-west-1", "bedrock-mantle")),
        ("proxy.us-east-1.internal", Scope("eu-central-1", "bedrock")),
        ("vpce-0a1.proxy.internal", Scope("eu-central-1", "bedrock")),
        ("127.0.0.1:8080", Scope("eu-central-1", "bedrock")),
    ],
)
def test_the_region_is_the_addresss_or_the_environments(host: str, expected: Scope) -> None:
    assert scope_of(f"https://{host}/model/m/converse", {"AWS_REGION": "eu-central-1"}) == expected


def test_an_unknown_region_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="AWS_REGION"):
        scope_of("http://127.0.0.1:1/x", {})
    assert scope_of("http://127.0.0.1:1/x", {"AWS_DEFAULT_REGION": "us-west-2"}) == Scope("us-west-2")


@pytest.mark.parametrize("environment", [{}, {"AWS_ACCESS_KEY_ID": "a"}, {"AWS_SECRET_ACCESS_KEY": "b"}])
def test_a_missing_key_says_what_to_set(environment: dict[str, str]) -> None:
    assert find_credentials(environment) is None
    with pytest.raises(MissingKey, match="AWS_BEARER_TOKEN_BEDROCK"):
        authorize("POST", CONVERSE, {}, b"", environment=environment, now=NOW)


def test_secrets_are_not_shown() -> None:
    assert "s3cret" not in repr(find_credentials(PAIR))


def test_the_headers_given_are_not_changed() -> None:
    headers = {"Content-Type": "application/json"}
    made = sign("POST", CONVERSE, headers, b"", credentials=KEYS, scope=SUITE, now=NOW)
    assert headers == {"Content-Type": "application/json"}
    assert set(made) == {"x-amz-date", "authorization"}
