"""AWS's own library for Bedrock. See the programs `bedrock_…`."""

import boto3
from botocore.config import Config
from modes import ADDRESS

# It signs its requests: over plain HTTP it sends no bearer token.
CLIENT = boto3.client(
    "bedrock-runtime",
    endpoint_url=ADDRESS,
    region_name="us-east-1",
    aws_access_key_id="any",
    aws_secret_access_key="any",
    config=Config(retries={"total_max_attempts": 1}),
)
