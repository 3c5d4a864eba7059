# SPDX-License-Identifier: Apache-2.0
"""Shows each behaviour that tests/peers/github_front.py adds; see github_front.sh. Prints TAP."""
import base64
import email.utils
import http.client
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import traceback
import urllib.parse

server = urllib.parse.urlsplit(os.environ["GITHUB_API_URL"])
folder, log = os.environ["GITHUB_FOLDER"], os.environ["GITHUB_LOG"]
REPO = "/repos/alice/locks/"
cases = []


class Reply:
    def __init__(self, answer):
        self.status, self.header = answer.status, answer.getheader
        data = answer.read()
        self.text = data.decode()
        self.json = json.loads(data) if data else None


def call(method, path, body=None, token="tok_alice", port=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port or server.port, timeout=10)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        headers["Authorization"] = "Bearer " + token
    path = path if path.startswith("/") else REPO + path
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    try:
        return Reply(connection.getresponse())
    finally:
        connection.close()


def expect(status, reply, pattern=""):
    if reply.status != status or not re.search(pattern, reply.text):
        raise AssertionError(f"{reply.status} {reply.text[:300]}; expected {status} {pattern}")
    return reply


def case(what):
    def add(function):
        cases.append((what, function))
        return function
    return add


def commit(message, *parents):
    tree = call("POST", "git/trees", {"tree": [
        {"path": "leasehold", "mode": "100644", "type": "blob", "content": "x\n"}]}).json["sha"]
    return expect(201, call("POST", "git/commits", {"message": message, "tree": tree,
                                                    "parents": parents})).json


def new_ref(name, sha=None, **more):
    return call("POST", "git/refs", {"ref": "refs/" + name, "sha": sha or commit("m")["sha"]},
                **more)


def lines_of(path):
    with open(log) as file:
        return [line.split() for line in file if path in line]


@case("etag: a GET with If-None-Match is 304, is not counted, and changes are seen")
def etag():
    first, second = commit("first")["sha"], None
    expect(201, new_ref("t/etag", first))
    seen = expect(200, call("GET", "git/ref/t/etag"))
    left = int(seen.header("x-ratelimit-remaining"))
    again = expect(304, call("GET", "git/ref/t/etag", If_None_Match=seen.header("ETag")))
    assert int(again.header("x-ratelimit-remaining")) == left and again.header("Date")
    second = commit("second", first)["sha"]
    expect(200, call("PATCH", "git/refs/t/etag", {"sha": second, "force": False}))
    expect(200, call("GET", "git/ref/t/etag", If_None_Match=seen.header("ETag")), second)


@case("etag: another token has another one")
def etag_of_token():
    seen = call("GET", "git/ref/heads/main")
    expect(200, call("GET", "git/ref/heads/main", token="tok_bob",
                     If_None_Match=seen.header("ETag")))


@case("tokens: an unknown one is 401")
def tokens():
    expect(401, call("GET", "git/ref/heads/main", token="wrong"), "Bad credentials")
    expect(200, call("GET", "git/ref/heads/main", token=None))


@case("seconds: times of commits are whole seconds, and not after Date")
def seconds():
    made = commit("time")["committer"]["date"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made), made
    date = email.utils.parsedate_to_datetime(call("GET", "git/ref/heads/main").header("Date"))
    assert made <= date.strftime("%Y-%m-%dT%H:%M:%SZ")


@case("writes: over the limit 403 with Retry-After, for the whole account; then admitted")
def writes():
    sha = commit("m")["sha"]
    call("POST", "/_front/set", {"writes": "3/60,500/3600"})
    for number in range(3):
        expect(201, new_ref(f"t/writes-{number}", sha, token="tok_bob"))
    refused = expect(403, new_ref("t/writes-3", sha, token="tok_bob_2"), "secondary rate limit")
    assert 1 <= int(refused.header("Retry-After")) <= 60
    assert int(refused.header("x-ratelimit-remaining")) > 0
    expect(200, call("GET", "git/ref/heads/main", token="tok_bob"))
    expect(404, call("GET", "git/ref/t/writes-3", token="tok_bob"))
    call("POST", "/_front/set", {"writes": "1/1"})
    time.sleep(1)
    expect(201, new_ref("t/writes-3", sha, token="tok_bob"))


@case("limit: headers count down; at 0 it is 403 until the reset; 429 on demand")
def limit():
    call("POST", "/_front/set", {"limit": "3/60"})
    for left in (2, 1, 0):
        reply = expect(200, call("GET", "git/ref/heads/main", token="tok_carol"))
        assert reply.header("x-ratelimit-limit") == "3" and reply.header("x-ratelimit-used")
        assert reply.header("x-ratelimit-remaining") == str(left)
    refused = expect(403, call("GET", "git/ref/heads/main", token="tok_carol"), "API rate limit")
    assert refused.header("x-ratelimit-remaining") == "0" and not refused.header("Retry-After")
    call("POST", "/_front/set", {"limit_status": 429})
    expect(429, call("GET", "git/ref/heads/main", token="tok_carol"))
    assert call("GET", "/rate_limit", token="tok_carol").json["rate"]["remaining"] == 0
    assert 0 < int(refused.header("x-ratelimit-reset")) - time.time() <= 61
    call("POST", "/_front/reset", {})
    call("POST", "/_front/set", {"limit": "1/1"})
    reply = expect(200, call("GET", "git/ref/heads/main", token="tok_carol"))
    time.sleep(max(0, int(reply.header("x-ratelimit-reset")) - time.time() + 0.05))
    expect(200, call("GET", "git/ref/heads/main", token="tok_carol"))


@case("refs: one below or above another is 422, as is a name that git refuses")
def refs():
    expect(201, new_ref("t/a"))
    expect(422, new_ref("t/a/b"), "Reference update failed")
    expect(201, new_ref("t/c/d"))
    expect(422, new_ref("t/c"), "Reference update failed")
    expect(422, new_ref("t/a"), "already exists")
    for bad in ("t/~1", "t/a..b", "t/a b", "t/x.lock", "t/.x", "t/x/"):
        expect(422, new_ref(bad), "valid ref name")
    expect(201, new_ref("t/a%2Fb"))
    expect(200, call("GET", "git/ref/t/a%252Fb"))


@case("refs: a missing one is 422 for PATCH and DELETE; an empty tree 422; no commits 409")
def refs_missing():
    sha = commit("m")["sha"]
    expect(422, call("PATCH", "git/refs/t/none", {"sha": sha}), "does not exist")
    expect(422, call("DELETE", "git/refs/t/none"), "does not exist")
    expect(404, call("GET", "git/ref/t/none"))
    expect(422, call("POST", "git/trees", {"tree": []}))
    expect(409, call("GET", "/repos/alice/empty/git/ref/heads/main"), "empty")
    expect(404, call("POST", "/repos/alice/none/git/refs", {"ref": "refs/t/a", "sha": sha}))


@case("refs: of twelve that create one at once, one succeeds")
def refs_race():
    sha, statuses = commit("m")["sha"], []
    threads = [threading.Thread(target=lambda: statuses.append(new_ref("t/race", sha).status))
               for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] + [422] * 11, statuses


@case("refs: of two that move one from the same commit at once, one succeeds")
def refs_moves():
    first = commit("first")["sha"]
    expect(201, new_ref("t/moves", first))
    bodies = [json.dumps({"sha": commit(word, first)["sha"], "force": False}).encode()
              for word in ("one", "other")]
    head = f"PATCH {REPO}git/refs/t/moves HTTP/1.1\r\nHost: front\r\n" \
        "Authorization: Bearer tok_alice\r\nContent-Length: %d\r\n\r\n"
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in bodies]
    for number, body in enumerate(bodies):
        sockets[number].sendall((head % len(body)).encode())
    for number, body in enumerate(bodies):
        sockets[number].sendall(body)
    replies = sorted(one.recv(4096).split()[1] for one in sockets)
    assert replies == [b"200", b"422"], replies


@case("rights: others' private repositories are 404, writes without rights 403")
def rights():
    expect(404, call("GET", "/repos/alice/secret/git/ref/heads/main", token="tok_bob"))
    expect(200, call("GET", "/repos/alice/secret/git/ref/heads/main"))
    expect(403, new_ref("t/carol", token="tok_carol"), "not accessible")
    assert not call("GET", "/repos/alice/locks", token="tok_carol").json["permissions"]["push"]
    assert call("GET", "/repos/alice/locks", token="tok_bob").json["permissions"]["push"]
    assert not call("GET", "/repos/alice/locks", token="tok_bob").json["permissions"]["admin"]
    expect(403, call("POST", "/repos/alice/archived/issues", {"title": "x"}), "archived")
    number = call("POST", "issues", {"title": "rights"}).json["number"]
    expect(403, call("POST", f"issues/{number}/labels", {"labels": ["x"]}, token="tok_carol"))
    expect(200, call("POST", f"issues/{number}/labels", {"labels": ["x"]}, token="tok_bob"))


@case("pulls: pull requests are in lists of issues, by page too, and have numbers as issues")
def pulls():
    main = call("GET", "git/ref/heads/main").json["object"]["sha"]
    expect(201, new_ref("heads/side", commit("side", main)["sha"]))
    first = call("POST", "issues", {"title": "one", "labels": ["todo"]}).json["number"]
    pull = expect(201, call("POST", "pulls", {"title": "p", "head": "side", "base": "main"}))
    call("POST", f"issues/{pull.json['number']}/labels", {"labels": ["todo"]})
    last = call("POST", "issues", {"title": "two", "labels": ["todo"]}).json["number"]
    assert "pull_request" in expect(200, call("GET", f"issues/{pull.json['number']}")).json
    query = "issues?labels=todo&state=open&sort=created&direction=asc&per_page=2"
    page = call("GET", query)
    following = re.match(r'<http://[^/]*(/[^>]*)>; rel="next"', page.header("Link"))[1]
    items = page.json + call("GET", following).json
    assert [one["number"] for one in items] == [first, pull.json["number"], last]
    assert ["pull_request" in one for one in items] == [False, True, False]


@case("issues: assigning is 201 and ignores unknown logins")
def issues():
    number = call("POST", "issues", {"title": "assign"}).json["number"]
    reply = call("POST", f"issues/{number}/assignees", {"assignees": ["alice", "nobody"]})
    assert [one["login"] for one in expect(201, reply).json["assignees"]] == ["alice"]


@case("an App gets a token, which works and is an account of its own")
def app():
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")
    claims = {"iat": int(time.time()) - 60, "exp": int(time.time()) + 300, "iss": "4711"}
    text = part(b'{"alg":"RS256","typ":"JWT"}') + b"." + part(json.dumps(claims).encode())
    signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", folder + "/app.pem"],
                               input=text, stdout=subprocess.PIPE, check=True).stdout
    jwt = (text + b"." + part(signature)).decode()
    made = expect(201, call("POST", "/app/installations/815/access_tokens", {}, token=jwt))
    expect(201, new_ref("t/app", token=made.json["token"]))
    assert lines_of("git/refs ")[-1][5] == "installation-815"


@case("log: a line a request, with status, login, token and whether it was conditional")
def request_log():
    call("GET", "git/ref/heads/main?log", token="tok_bob_2", If_None_Match='"x"')
    line = lines_of("git/ref/heads/main?log")[-1]
    assert line[2:] == ["GET", REPO + "git/ref/heads/main?log", "200", "bob", "tok_bob_2",
                        "conditional", "counted", "emulator"], line
    assert float(line[1]) <= float(line[0]) <= time.monotonic()


@case("faults: a status with headers, as often as asked; a delay; handled but not told")
def faults():
    call("POST", "/_front/fault", {"match": "^GET .*fault$", "times": 2, "status": 503,
                                   "headers": {"Retry-After": "7"}, "body": {"message": "no"}})
    for _ in range(2):
        reply = expect(503, call("GET", "git/ref/heads/main?fault"), "no")
        assert reply.header("Retry-After") == "7"
    expect(200, call("GET", "git/ref/heads/main?fault"))
    call("POST", "/_front/fault", {"match": "git/refs", "status": 502, "forward": True})
    expect(502, new_ref("t/hidden"))
    expect(200, call("GET", "git/ref/t/hidden"))
    call("POST", "/_front/fault", {"match": "slow", "delay_ms": 300})
    since = time.monotonic()
    expect(200, call("GET", "git/ref/heads/main?slow"))
    assert time.monotonic() - since >= 0.3
    expect(400, call("POST", "/_front/fault", {"match": "("}))


@case("faults: connections dropped before and after the request was handled")
def drops():
    for when, status in (("before", 404), ("after", 200)):
        sha = commit("m")["sha"]
        call("POST", "/_front/fault", {"match": "^POST .*git/refs", "drop": when})
        try:
            new_ref("t/drop-" + when, sha)
            raise AssertionError("there was a reply")
        except (http.client.RemoteDisconnected, ConnectionError):
            pass
        expect(status, call("GET", "git/ref/t/drop-" + when))


@case("each addition can be switched off, and reset switches it on")
def switches():
    off = "etag tokens seconds limit writes refs rights pulls issues".split()
    call("POST", "/_front/set", {"without": off})
    plain = expect(200, call("GET", "git/ref/heads/main", token="unknown"))
    assert not plain.header("ETag") and plain.header("x-ratelimit-limit") == "5000"
    expect(404, call("DELETE", "git/refs/t/none"))
    call("POST", "/_front/reset", {})
    expect(401, call("GET", "git/ref/heads/main", token="unknown"))


@case("server-github.sh: killed, frozen and started again it has the same address and data")
def server_verbs():
    def run(verb):
        return subprocess.run(["scripts/server-github.sh", verb, home], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
    with tempfile.TemporaryDirectory(dir="build") as home:
        try:
            run("start")
            port = int(run("port"))
            assert run("url").startswith(f"GITHUB_API_URL=http://127.0.0.1:{port} GITHUB_TOKEN=")
            expect(201, call("POST", "issues", {"title": "kept"}, port=port))
            run("kill")
            try:
                call("GET", "issues", port=port)
                raise AssertionError("it is alive")
            except ConnectionError:
                pass
            run("start")
            assert int(run("port")) == port
            run("freeze")
            run("thaw")
            expect(200, call("GET", "issues", port=port), "kept")
        finally:
            run("stop")


wrong = 0
for number, (what, function) in enumerate(cases, 1):
    try:
        function()
        print(f"ok {number} - {what}", flush=True)
    except Exception:
        wrong = 1
        print(f"not ok {number} - {what}", flush=True)
        print("# " + traceback.format_exc().strip().replace("\n", "\n# "), flush=True)
    call("POST", "/_front/reset", {})
print(f"1..{len(cases)}")
raise SystemExit(wrong)
