# SPDX-License-Identifier: Apache-2.0
"""Stands before the GitHub emulator and adds what GitHub has and the emulator lacks.

github_front.py --port P --emulator P --tokens FILE --log FILE [--without NAME,…] [--limit N/S]
                [--writes N/S,…] [--limit-status 403|429]

Requests are passed on to the emulator on the loopback. FILE has lines "TOKEN LOGIN"; a login's
tokens are used in turn towards the emulator, which allows 5,000 requests an hour each. Tokens that
Apps get are appended. Only limits and faults are in memory: the front may be killed and started
again. It passes on one write of a ref at a time: the emulator reads the ref before the body of the
request, so of two PATCH requests at once both succeed, and one update is lost (tried).
What it adds, by the name that switches it off (facts: docs.github.com, "Rate limits for the REST
API", "Best practices for using the REST API", "Git references", and reports of users; not tried):

  etag     GET replies have an ETag, which depends on the token too; If-None-Match with it: 304,
           which does not count against the limit
  tokens   an unknown token: 401 "Bad credentials"
  seconds  times of commits, issues, comments and events are whole seconds, as is Date
  limit    --limit requests in so many seconds for each account (5000/3600): x-ratelimit-limit,
           -remaining, -used, -reset, -resource; over it 403 with x-ratelimit-remaining: 0
  writes   at most --writes in so many seconds for each account (80/60,500/3600); over it 403 with
           Retry-After. GitHub says "content-generating requests"; here every write is one
  refs     a ref below a ref, or above one: 422; a name that git refuses: 422; PATCH and DELETE of
           a missing ref: 422 and not 404; a tree without entries: 422; git/ of a repository without
           commits: 409. Ref writes are done one at a time: of two PATCHes from one head that arrive
           together the emulator accepts both, since it reads the ref before it awaits the body
  rights   a private repository of others: 404 and not 403; the members of "permissions"; no issue
           is changed in an archived repository or labelled without rights: 403
  pulls    pull requests are issues too: in lists and by number, with the member "pull_request"
  issues   assigning replies 201 and ignores unknown logins

The log has a line for each request: monotonic seconds, seconds since the start, method, path,
status (or drop), login, token, conditional or -, counted or - (against the limit), and who replied:
emulator, front or fault. Requests of the front itself are not in it.

Control, on the same port:
  POST /_front/fault {"match": regex for "METHOD path", "times": N, "status", "headers", "body",
      "forward": true (the emulator handles it, and the status above is the reply), "delay_ms",
      "drop": "before" | "after" (closes the connection without a reply, before or after the
      emulator handled the request)}; without a status and drop it is only delayed
  POST /_front/set {"limit": "N/S", "writes": "N/S,…", "limit_status": 429, "without": [NAME, …]}
  POST /_front/reset   no faults, counts or changed settings
"""
import argparse
import collections
import hashlib
import http.client
import http.server
import json
import math
import re
import socket
import threading
import time
import urllib.parse

NAMES = ("etag", "tokens", "seconds", "limit", "writes", "refs", "rights", "pulls", "issues")
HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "date")
INSTALLATION = "installation-"  # the login of an App's tokens, with a number
DOCS = "https://docs.github.com/rest"
MILLISECONDS = re.compile(rb'(?<!\\)"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z"')
BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|[/.]$")
REPO = re.compile(r"(/repos/[^/]+/[^/?]+)/?([^?]*)(?:\?(.*))?$")

parser = argparse.ArgumentParser()
for name in ("port", "emulator"):
    parser.add_argument("--" + name, type=int, required=True)
for name in ("tokens", "log"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--without", default="")
parser.add_argument("--limit", default="5000/3600")
parser.add_argument("--writes", default="80/60,500/3600")
parser.add_argument("--limit-status", type=int, default=403)
options = parser.parse_args()

lock = threading.Lock()
refs_lock = threading.Lock()
started = time.monotonic()
log = open(options.log, "a", buffering=1)
logins, pools, turns = {}, collections.defaultdict(list), collections.Counter()
with open(options.tokens) as file:
    for token, login in map(str.split, file):
        logins[token] = login
        pools[login].append(token)
has_commits = set()  # repositories that are known not to be empty


def ratios(text):
    return [tuple(map(int, one.split("/"))) for one in text.split(",")]


class Settings:
    """What `set` changes and `reset` restores, and what they count."""

    def __init__(self):
        self.without = set(filter(None, options.without.split(",")))
        self.limit = ratios(options.limit)[0]
        self.writes = ratios(options.writes)
        self.limit_status = options.limit_status
        self.faults = []
        self.used = {}  # of an account: requests, and when their count ends
        self.written = collections.defaultdict(collections.deque)  # of an account: when

    def change(self, wanted):
        if "limit" in wanted:
            self.limit = ratios(wanted["limit"])[0]
        if "writes" in wanted:
            self.writes = ratios(wanted["writes"])
        self.limit_status = wanted.get("limit_status", self.limit_status)
        self.without = set(wanted.get("without", self.without))

    def has(self, name):
        return name not in self.without

    def usage(self, account):  # of the limit: used, and when it is 0 again
        used, reset = self.used.get(account, (0, 0))
        if reset <= time.time():
            used, reset = 0, math.ceil(time.time() + self.limit[1])
            self.used[account] = (used, reset)
        return used, reset

    def admit_write(self, account):
        """Counts a write; returns the seconds until it would be admitted, or 0."""
        now, written = time.monotonic(), self.written[account]
        longest = max(seconds for _, seconds in self.writes)
        while written and written[0] <= now - longest:
            written.popleft()
        wait = 0
        for count, seconds in self.writes:
            recent = [one for one in written if one > now - seconds]
            if len(recent) >= count:
                wait = max(wait, math.ceil(recent[-count] + seconds - now))
        if wait == 0:
            written.append(now)
        return wait


settings = Settings()


class Reply:
    def __init__(self, status, body=b"", headers=(), source="emulator"):
        self.status, self.body, self.headers, self.source = status, body, list(headers), source

    def json(self):
        return json.loads(self.body or b"null")


def refusal(status, message, headers=()):
    body = json.dumps({"message": message, "documentation_url": DOCS, "status": str(status)})
    return Reply(status, body.encode(),
                 [("content-type", "application/json; charset=utf-8"), *headers], "front")


class Front(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    disable_nagle_algorithm = True
    emulator, used_at = None, 0

    def log_message(self, *words):
        pass

    def finish(self):
        if self.emulator is not None:
            self.emulator.close()
        super().finish()

    # ---- towards the emulator ----

    def ask(self, method, path, body=None):
        """One request with the caller's rights. The emulator closes idle connections after 5 s."""
        if self.emulator is None or time.monotonic() - self.used_at > 2:
            if self.emulator is not None:
                self.emulator.close()
            self.emulator = http.client.HTTPConnection("127.0.0.1", options.emulator, timeout=60)
            self.emulator.connect()
            self.emulator.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The host of the caller: Link headers lead back to the front.
        headers = {"Host": self.headers.get("Host", "localhost")}
        if body:
            headers["Content-Type"] = "application/json"
        if self.token:
            headers["Authorization"] = "Bearer " + self.next_token()
        self.emulator.request(method, path, body, headers)
        answer = self.emulator.getresponse()
        data = answer.read()
        self.used_at = time.monotonic()
        kept = [(name, value) for name, value in answer.getheaders()
                if name.lower() not in HOP and not
                (settings.has("limit") and name.lower().startswith("x-ratelimit-"))]
        return Reply(answer.status, data, kept)

    def next_token(self):
        if not self.is_user:
            return self.token
        with lock:
            turns[self.login] += 1
            return pools[self.login][turns[self.login] % len(pools[self.login])]

    def found(self, path):
        return self.ask("GET", path).status == 200

    def may(self, repo, *levels):
        answer = self.ask("GET", f"{repo}/collaborators/{self.login}/permission")
        return answer.status == 200 and answer.json()["permission"] in levels

    # ---- what is added ----

    def identify(self):
        given = self.headers.get("Authorization", "")
        self.token = re.sub(r"(?i)^(bearer|token)\s+", "", given).strip()
        self.login = logins.get(self.token, "-")
        self.is_user = self.login != "-" and not self.login.startswith(INSTALLATION)
        if not self.token or self.token.startswith("eyJ"):
            return None
        if self.login == "-" and settings.has("tokens"):
            return refusal(401, "Bad credentials")
        return None

    def learn(self, token, login):
        with lock, open(options.tokens, "a") as file:
            file.write(f"{token} {login}\n")
            logins[token] = login

    def limits(self):
        """The reply that a limit demands, or None."""
        with lock:
            used, reset = settings.usage(self.login)
            if settings.has("limit") and used >= settings.limit[0]:
                return refusal(settings.limit_status,
                               f"API rate limit exceeded for user {self.login}.")
            wait = 0
            if settings.has("writes") and self.command != "GET":
                wait = settings.admit_write(self.login)
        if wait == 0:
            return None
        return refusal(settings.limit_status, "You have exceeded a secondary rate limit. Please "
                       "wait a few minutes before you try again.", [("Retry-After", str(wait))])

    def count(self, reply):
        """Counts the reply against the limit, whose state its headers tell."""
        with lock:
            used, reset = settings.usage(self.login)
            counted = reply.status not in (304, 401) and self.path != "/rate_limit" and \
                used < settings.limit[0]
            if counted:
                used += 1
                settings.used[self.login] = (used, reset)
        if settings.has("limit"):
            limit = settings.limit[0]
            reply.headers += [("x-ratelimit-limit", str(limit)),
                              ("x-ratelimit-remaining", str(max(0, limit - used))),
                              ("x-ratelimit-used", str(used)), ("x-ratelimit-reset", str(reset)),
                              ("x-ratelimit-resource", "core")]
        return counted

    def rate_limit(self):
        with lock:
            used, reset = settings.usage(self.login)
        core = {"limit": settings.limit[0], "used": used, "reset": reset,
                "remaining": max(0, settings.limit[0] - used), "resource": "core"}
        return Reply(200, json.dumps({"resources": {"core": core}, "rate": core}).encode(),
                     [("content-type", "application/json; charset=utf-8")], "front")

    def check_git(self, repo, rest, body):
        if repo not in has_commits:
            if self.ask("GET", repo + "/commits?per_page=1").status == 409:
                return refusal(409, "Git Repository is empty.")
            has_commits.add(repo)
        if self.command == "POST" and rest == "git/trees" and body.get("tree") == []:
            return refusal(422, "Invalid tree info")
        if self.command == "POST" and rest == "git/refs" and isinstance(body.get("ref"), str):
            return self.check_new_ref(repo, body["ref"])
        return None

    def check_new_ref(self, repo, ref):
        if BAD_REF.search(ref) or ref.count("/") < 2:
            return refusal(422, f"{ref} is not a valid ref name.")
        parts = ref.split("/")[1:]
        above = ["/".join(parts[:number]) for number in range(1, len(parts))]
        path = urllib.parse.quote("/".join(parts))
        below = self.ask("GET", f"{repo}/git/matching-refs/{path}/")
        if any(self.found(f"{repo}/git/ref/{urllib.parse.quote(one)}") for one in above) or \
                (below.status == 200 and below.json()):
            return refusal(422, "Reference update failed")
        return None

    def check_issue(self, repo, rest):
        if self.command == "GET" or not self.is_user:
            return None
        about = self.ask("GET", repo)
        if about.status == 200 and about.json().get("archived"):
            return refusal(403, "Repository was archived so is read-only.")
        if re.search(r"/(labels|assignees)(/|$)", rest) and about.status == 200 and \
                not self.may(repo, "admin", "maintain", "push", "triage"):
            return refusal(403, "Must have admin rights to Repository.")
        return None

    def pull_as_issue(self, pull):
        issue = {name: pull.get(name) for name in (
            "number", "id", "node_id", "title", "user", "labels", "state", "assignee", "assignees",
            "created_at", "updated_at", "closed_at", "body", "html_url", "url")}
        issue["pull_request"] = {"url": pull["url"], "html_url": pull["html_url"]}
        return issue

    def all_of(self, path, query):
        items, page = [], 1
        while True:
            query.update(per_page="100", page=str(page))
            answer = self.ask("GET", path + "?" + urllib.parse.urlencode(query))
            if answer.status != 200:
                return answer, None
            items += answer.json()
            if len(answer.json()) < 100:
                return answer, items
            page += 1

    def list_issues(self, repo, query):
        """Issues and pull requests; nothing if the repository has no pull requests."""
        query = dict(urllib.parse.parse_qsl(query or ""))
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        state, labels = query.get("state", "open"), query.get("labels", "").split(",")
        _, pulls = self.all_of(repo + "/pulls", {"state": state})
        pulls = [one for one in pulls or [] if
                 set(filter(None, labels)) <= {label["name"] for label in one["labels"]}]
        if not pulls:
            return None
        answer, items = self.all_of(repo + "/issues", dict(query))
        if items is None:
            return answer
        items += map(self.pull_as_issue, pulls)
        items.sort(key=lambda one: one["number"], reverse=query.get("direction", "desc") == "desc")
        headers = [one for one in answer.headers if one[0].lower() != "link"]
        if page * size < len(items):
            query.update(per_page=str(size), page=str(page + 1))
            where = f"http://{self.headers.get('Host')}{repo}/issues?" + \
                urllib.parse.urlencode(query)
            headers.append(("Link", f'<{where}>; rel="next"'))
        return Reply(200, json.dumps(items[(page - 1) * size:page * size]).encode(), headers)

    def mend_issue(self, repo, rest, reply):
        match = re.fullmatch(r"issues/(\d+)", rest)
        if settings.has("pulls") and match and self.command == "GET" and reply.status == 404:
            pull = self.ask("GET", f"{repo}/pulls/{match[1]}")
            if pull.status == 200:
                return Reply(200, json.dumps(self.pull_as_issue(pull.json())).encode(),
                             pull.headers)
        if settings.has("issues") and reply.status == 200 and self.command == "POST" and \
                rest.endswith("/assignees"):
            reply.status = 201
        return reply

    def mend_rights(self, repo, rest, reply):
        if reply.status == 403 and b'"Forbidden"' in reply.body:
            if not self.found(repo):
                return refusal(404, "Not Found")
            kind = "personal access token" if self.is_user else "integration"
            return refusal(403, f"Resource not accessible by {kind}")
        if rest == "" and reply.status == 200 and self.is_user:
            levels = ("pull", "triage", "push", "maintain", "admin")
            about = reply.json()
            about["permissions"] = {level: level == "pull" or self.may(repo, *levels[rank:])
                                    for rank, level in enumerate(levels)}
            reply.body = json.dumps(about).encode()
        return reply

    def pass_on(self, body):
        """The emulator's reply as GitHub would give it."""
        match = REPO.match(self.path)
        repo, rest, query = match.groups() if match else ("", "/", None)
        try:
            content = json.loads(body) if body else {}
        except ValueError:
            content = {}
        content = content if isinstance(content, dict) else {}
        refused = None
        if rest.startswith("git/") and settings.has("refs"):
            refused = self.check_git(repo, rest, content)
        if rest.startswith("issues") and settings.has("rights"):
            refused = self.check_issue(repo, rest)
        if refused is not None:
            return self.mend_rights(repo, rest, refused)
        if rest == "issues" and self.command == "GET" and settings.has("pulls"):
            listed = self.list_issues(repo, query)
            if listed is not None:
                return listed
        if rest.endswith("/assignees") and self.command == "POST" and settings.has("issues"):
            content["assignees"] = [one for one in content.get("assignees", [])
                                    if self.found("/users/" + urllib.parse.quote(one))]
            body = json.dumps(content).encode()
        reply = self.ask(self.command, self.path, body)
        if settings.has("refs") and re.match("git/refs/.", rest) and reply.status == 404 and \
                self.found(repo):
            reply = refusal(422, "Reference does not exist")
        reply = self.mend_issue(repo, rest, reply)
        if match and settings.has("rights"):
            reply = self.mend_rights(repo, rest, reply)
        if self.path.endswith("/access_tokens") and reply.status == 201:
            self.learn(reply.json()["token"], INSTALLATION + self.path.split("/")[3])
        return reply

    def condition(self, reply):
        """The ETag, and 304 if the caller has it."""
        if self.command != "GET" or reply.status != 200 or not settings.has("etag"):
            return reply
        etag = hashlib.sha256(self.token.encode() + b"\n" + reply.body).hexdigest()
        reply.headers += [("ETag", f'W/"{etag}"'), ("Vary", "Accept, Authorization")]
        if etag in self.headers.get("If-None-Match", ""):
            reply.status, reply.body = 304, b""
        return reply

    # ---- towards the caller ----

    def send(self, reply):
        self.send_response_only(reply.status)
        self.send_header("Date", self.date_time_string(int(time.time())))
        for name, value in reply.headers:
            if reply.status not in (204, 304) or name.lower() != "content-type":
                self.send_header(name, value)
        if reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def note(self, status, source, counted):
        now = time.monotonic()
        conditional = "conditional" if self.headers.get("If-None-Match") else "-"
        token = self.token if self.is_user else "-"
        log.write(f"{now:.6f} {now - started:.6f} {self.command} {self.path} {status} {self.login} "
                  f"{token} {conditional} {'counted' if counted else '-'} {source}\n")

    def take_fault(self):
        line = f"{self.command} {self.path}"
        with lock:
            for fault in settings.faults:
                if fault["times"] > 0 and re.search(fault["match"], line):
                    fault["times"] -= 1
                    return fault
        return {}

    def fault_reply(self, fault):
        body = fault.get("body", "")
        body = body if isinstance(body, str) else json.dumps(body)
        return Reply(fault["status"], body.encode(),
                     [("content-type", "application/json; charset=utf-8"),
                      *map(tuple, fault.get("headers", {}).items())], "fault")

    def drop(self):
        self.note("drop", "fault", False)
        self.close_connection = True

    def serve(self, body):
        unknown = self.identify()
        fault = self.take_fault()
        time.sleep(fault.get("delay_ms", 0) / 1000)
        if fault.get("drop") == "before":
            return self.drop()
        if "status" in fault and not fault.get("forward"):
            reply = self.fault_reply(fault)
            self.note(reply.status, "fault", False)
            return self.send(reply)
        if self.path == "/rate_limit" and settings.has("limit"):
            reply = unknown or self.rate_limit()
        else:
            reply = unknown or self.limits()
        if reply is None and self.command != "GET" and "/git/refs" in self.path and \
                settings.has("refs"):
            with refs_lock:
                reply = self.pass_on(body)
        elif reply is None:
            reply = self.pass_on(body)
        if settings.has("seconds"):
            reply.body = MILLISECONDS.sub(rb'"\1Z"', reply.body)
        reply = self.condition(reply)
        counted = self.count(reply)
        if fault.get("drop") == "after":
            return self.drop()
        if "status" in fault:
            reply = self.fault_reply(fault)
        self.note(reply.status, reply.source, counted)
        return self.send(reply)

    def control(self, body):
        global settings
        try:
            wanted = json.loads(body or b"{}")
            with lock:
                if self.path == "/_front/reset":
                    settings = Settings()
                elif self.path == "/_front/set":
                    settings.change(wanted)
                elif self.path == "/_front/fault":
                    re.compile(wanted["match"])
                    settings.faults.append({"times": 1, **wanted})
                else:
                    raise ValueError("unknown path")
        except (ValueError, KeyError, re.error) as error:
            return self.send(refusal(400, str(error)))
        return self.send(Reply(204))

    def carry(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        if self.path.startswith("/_front/"):
            self.control(body)
        else:
            self.serve(body)

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # as from a broken network

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = carry


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


listener = Listener(("127.0.0.1", options.port), Front)
print("listening on", listener.server_port, flush=True)
listener.serve_forever()
