#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the OpenAPI document of a daemon with what it does: openapi.py PORT CHECK. The requests
are made from the document. Exits with 1 and a reason if they differ.
"""

import json
import re
import sys
import urllib.parse

from serve_http_kit import Http, Response, request

ADDRESS = ("127.0.0.1", int(sys.argv[1]))
web = Http(ADDRESS)
document = web.call("GET", "/openapi.json")
assert document.status == 200, document
document = json.loads(document.body)
numbers = iter(range(10 ** 6))

VALUES = {"keys": ["a", "b"], "ttl_ms": 60000, "wait_ms": 0, "limit": 2, "priority": 1,
          "cooldown_ms": 1, "lock_delay_ms": 1, "meta": {"a": "b"}, "count": 5, "keep_ms": 5000,
          "status": 3, "overlap_ms": 5, "token": "1", "after": "5", "expected": "0"}
WRONG = {"string": 5, "integer": "x", "boolean": "x", "object": [], "array": {}}


class Operation:
    def __init__(self, path, method, body):
        self.path, self.method, self.body = path, method, body
        self.text = document["paths"][path][method]
        self.query = {one["name"]: one for one in self.text.get("parameters", ())
                      if one["in"] == "query"}
        self.has_body = "requestBody" in self.text
        self.schemas = body["properties"] if self.has_body else {
            name: one["schema"] for name, one in self.query.items()}
        self.required = body.get("required", []) if self.has_body else [
            name for name, one in self.query.items() if one["required"]]

    def __str__(self):
        return f"{self.method} {self.path}"

    def fields(self):
        return {name: self.value(name) for name in self.required}

    def value(self, name):
        if name == "request_id":
            return f"id-{next(numbers)}"
        return VALUES.get(name, True if self.schemas[name]["type"] == "boolean" else "x")

    def call(self, fields):
        """The response to these fields, whose status and members are in the document."""
        path = self.path.replace("{key}", f"key-{next(numbers)}")
        method = self.method.upper()
        if self.has_body:
            return self.check(web.call(method, path, fields))
        texts = {name: value if isinstance(value, str) else json.dumps(value)
                 for name, value in fields.items()}
        if texts:
            path += "?" + urllib.parse.urlencode(texts)
        if path.startswith("/v1/watch"):
            return self.check(self.stream(path))
        return self.check(web.call(method, path))

    @staticmethod
    def stream(path):
        with Http(ADDRESS) as other:
            other.send(request("GET", path))
            status, fields = other.head()
            body = b"" if status == 200 else other.take(int(fields["content-length"]), 1e9)
            return Response(status, fields, body)

    def check(self, response):
        listed = self.text["responses"].get(str(response.status))
        assert listed is not None, f"{self}: {response.status} is not listed"
        kind = response.fields["content-type"].split(";")[0]
        assert list(listed["content"]) == [kind], (self, response)
        if kind == "application/json":
            fits(response.json, listed["content"][kind]["schema"], str(self))
        return response


def fits(value, schema, where):
    """The value has the types of the schema, and no member that it does not name."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if value is None and schema.get("nullable"):
        return
    types = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}
    kind = types[schema["type"]]
    assert isinstance(value, kind) and (kind is not int or not isinstance(value, bool)), (
        where, value, schema)
    for name in schema.get("required", ()):
        assert name in value, (where, name)
    if "properties" in schema:
        for name, member in value.items():
            assert name in schema["properties"], f"{where}: {name} is not in the document"
            fits(member, schema["properties"][name], f"{where} {name}")
    for item in value if kind is list else ():
        fits(item, schema["items"], where)


def operations():
    for path, methods in document["paths"].items():
        for method, text in methods.items():
            body = text.get("requestBody", {}).get("content", {}).get("application/json", {})
            schema = body.get("schema", {})
            for one in schema.get("oneOf", [schema]):
                yield Operation(path, method, one)


def check_required():
    """The required fields are enough, and none of them may be missing."""
    for operation in operations():
        response = operation.call(operation.fields())
        assert response.status != 400, (str(operation), response)
        for name in operation.required:
            fields = {other: value for other, value in operation.fields().items() if other != name}
            response = operation.call(fields)
            if name == "reason" and "value" in operation.required:
                name = "expected"  # without a reason it is the other alternative
            assert response.status == 400 and f"{name} is missing" in response.text, (
                str(operation), name, response)


def check_optional():
    for operation in operations():
        for name in operation.schemas:
            response = operation.call({**operation.fields(), name: operation.value(name)})
            assert response.status != 400, (str(operation), name, response)


def check_types():
    for operation in operations():
        for name, schema in operation.schemas.items():
            if not operation.has_body and schema["type"] == "string":
                continue  # a query has texts only
            response = operation.call({**operation.fields(), name: WRONG[schema["type"]]})
            assert response.status == 400 and response.text.startswith(f"usage: {name} "), (
                str(operation), name, response)


def check_unknown():
    for operation in operations():
        response = operation.call({**operation.fields(), "no_such_field": "x"})
        assert response.status == 400 and "'no_such_field'" in response.text, (
            str(operation), response)


def check_methods():
    """A path has the methods of the document and HEAD; other paths do not exist."""
    for path, methods in document["paths"].items():
        expected = {method.upper() for method in methods}
        expected |= {"HEAD"} if "GET" in expected else set()
        for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - expected:
            response = web.call(method, path.replace("{key}", "k"))
            assert response.status == 405, (path, method, response)
            assert set(response.fields["allow"].split(", ")) == expected, (path, response)
        assert web.call("GET", path.replace("{key}", "k") + "/no/such/path").status == 404, path
    names = [text["operationId"] for methods in document["paths"].values()
             for text in methods.values()]
    assert len(names) == len(set(names)) and all(re.fullmatch(r"\w+", name) for name in names)


def check_outcomes():
    """Each status of a refusal that a verb has, with the members of its reply."""
    def call(line, fields, status):
        method, path, key = line.split(" ")
        operation = Operation(path, method, {"properties": {}})
        path = path.replace("{key}", key)
        response = operation.check(web.call(method.upper(), path, fields))
        assert response.status == status, (line, fields, response)
        return response.json

    take = {"holder": "h", "ttl_ms": 60000}
    acquire, once = "post /v1/locks/{key}/acquire", "post /v1/once/{key}/begin"
    grant = call(f"{acquire} o", {**take, "request_id": "o"}, 200)
    call(f"{acquire} o", take, 409)
    call(f"{acquire} o2", {**take, "request_id": "o"}, 422)
    call("get /v1/locks/{key} o?raw=true", None, 200)
    call("get /v1/locks o?raw=true", None, 200)
    call("get /v1/locks/{key}/history o", None, 200)
    token = {"token": grant["token"]}
    call("post /v1/locks/{key}/release o", {**token, "cooldown_ms": 60000}, 200)
    call("post /v1/locks/{key}/renew o", token, 412)
    call(f"{acquire} o", take, 423)
    call("post /v1/locks/{key}/clear o", {}, 200)
    call("post /v1/acquire -", {**take, "keys": ["o3", "o4"]}, 200)
    claim = call(f"{once} o", {**take, "payload": "p"}, 200)
    call(f"{once} o", {**take, "payload": "p"}, 409)
    call("post /v1/once/{key}/finish o", {"token": claim["token"], "result": "r"}, 200)
    call(f"{once} o", {**take, "payload": "q"}, 422)
    call("get /v1/once/{key} o", None, 200)
    call("put /v1/watermarks/{key} o", {"value": "5", "expected": "4"}, 412)
    call("put /v1/watermarks/{key} o", {"value": "5", "reason": "r"}, 200)
    call("post /v1/watermarks/{key}/begin o", {}, 200)


{"required": check_required, "optional": check_optional, "types": check_types,
 "unknown": check_unknown, "methods": check_methods, "outcomes": check_outcomes}[sys.argv[2]]()
