"""The document describes what is served, and nothing else."""

import json

from headrace.ordered.api import Api
from headrace.ordered.endpoints import ENDPOINTS
from headrace.ordered.openapi import openapi_document


def test_the_document_names_every_endpoint_with_its_body_and_refusals():
    document = openapi_document()

    assert document["openapi"] == "3.1.0"
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path][endpoint.method.lower()]
        assert operation["operationId"] == endpoint.name and callable(getattr(Api, endpoint.name))
        assert ("requestBody" in operation) == (endpoint.body is not None)
        assert {str(status) for status in endpoint.refusals} <= set(operation["responses"])


def test_every_reference_leads_somewhere():
    text = json.dumps(openapi_document())
    schemas = openapi_document()["components"]["schemas"]

    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.split('"')[0] in schemas
    assert set(schemas["Register"]["properties"]) == {"consumer", "healthURL", "capacity"}
    assert schemas["Acknowledge"]["required"] == ["consumer", "message_id"]
