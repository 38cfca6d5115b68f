"""Strands Agents with BedrockModel, which asks by AWS's own library over ConverseStream."""

import boto3
from botocore.config import Config
from modes import ADDRESS
from strands.models import BedrockModel
from strands_modes import ask_by

# It signs its requests: over plain HTTP it sends no bearer token.
SESSION = boto3.Session(aws_access_key_id="any", aws_secret_access_key="any", region_name="us-east-1")


def open_model(name, **fields):
    config = Config(retries={"total_max_attempts": 1})
    fixed = {"endpoint_url": ADDRESS, "boto_session": SESSION, "boto_client_config": config, "max_tokens": 4096}
    return BedrockModel(model_id=name, additional_request_fields=fields or None, **fixed)


ask_by(open_model, thinking={"type": "enabled", "budget_tokens": 2048})
