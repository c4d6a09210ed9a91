#!/usr/bin/env python3
# ruff: noqa
# fmt: off
"""Replay recorded kube-apiserver conversations against any server and compare the answers.

Only needs Python 3.11 and PyYAML.  See README.md for the scenario format.
"""
import argparse, base64, copy, datetime, fnmatch, http.client, json, os, queue, random, re, ssl, sys, threading, time, urllib.parse
import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PRIOS = ["must", "should", "could"]
# A facet can never weigh more than this, unless the scenario overrides it with `facets: {managedFields: must}`.
FACET_PRIO = {"core": "must", "message": "must", "managedFields": "should", "warning": "should", "contentType": "must"}
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
MTS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
AGE = r"(?:<unknown>|<invalid>|(?:\d+(?:y|d|h|m|s))+)"
DUMP = re.compile(r'(?s)(Invalid value: )"\{\\".*\}"(: )')
PH = re.compile(r"\{\{([a-z]+)(?::([^}]*))?\}\}")
PH_RE = {"rv": r"[^\s\",)]+", "uid": r"[0-9A-Za-z-]+", "gen": r"[a-z0-9]{4,12}", "time": TS, "microtime": MTS, "age": AGE, "token": r"\S+",
         "hash": r"[0-9A-Za-z+/=_-]+", "int": r"\d+", "ip": r"\d+\.\d+\.\d+\.\d+", "addr": r"\S+", "any": r"(?s:.*)"}


class Skip(Exception):
    pass


# ----------------------------------------------------------------------------------------------- paths into documents
def split_path(path):
    return [s.replace("~1", "/").replace("~0", "~") for s in re.findall(r"(?:\*?\[[^\]]*\]|[^/\[]+|\[)+", path)]


def lookup(doc, path):
    """'/a/b/0', '[name=x]' selects in a list, '*keys' / '*len' / '*[f]' summarise.  Returns '{{missing}}' when absent."""
    for seg in split_path(path):
        if seg == "*keys":
            return sorted(doc) if isinstance(doc, dict) else "{{missing}}"
        if seg == "*len":
            return len(doc) if isinstance(doc, (dict, list)) else "{{missing}}"
        m = re.fullmatch(r"\*\[(.+)\]", seg)
        if m:
            return [lookup(x, m.group(1)) for x in doc] if isinstance(doc, list) else "{{missing}}"
        m = re.fullmatch(r"\[(.+)\]", seg)
        if m:
            want = dict(kv.split("=", 1) for kv in m.group(1).split(","))
            if not isinstance(doc, list):
                return "{{missing}}"
            hit = [x for x in doc if isinstance(x, dict) and all(str(lookup(x, k.replace(".", "/"))) == v for k, v in want.items())]
            if not hit:
                return "{{missing}}"
            doc = hit[0]
        elif isinstance(doc, dict) and seg in doc:
            doc = doc[seg]
        elif isinstance(doc, list) and seg.lstrip("-").isdigit() and -len(doc) <= int(seg) < len(doc):
            doc = doc[int(seg)]
        else:
            return "{{missing}}"
    return doc


def remove(doc, path):
    segs = split_path(path)

    def walk(node, i):
        if i == len(segs) - 1:
            if isinstance(node, dict):
                node.pop(segs[i], None)
            elif isinstance(node, list) and segs[i].isdigit() and int(segs[i]) < len(node):
                del node[int(segs[i])]
            return
        if segs[i] == "*":
            for v in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else []):
                walk(v, i + 1)
        elif isinstance(node, dict) and segs[i] in node:
            walk(node[segs[i]], i + 1)
        elif isinstance(node, list) and segs[i].isdigit() and int(segs[i]) < len(node):
            walk(node[int(segs[i])], i + 1)
    walk(doc, 0)


def assign(doc, path, value):
    segs = split_path(path)
    for i, seg in enumerate(segs[:-1]):
        if isinstance(doc, list):
            doc = doc[int(seg)]
        else:
            doc = doc.setdefault(seg, {})
    if isinstance(doc, list):
        if segs[-1] == "-":
            doc.append(value)
        else:
            doc[int(segs[-1])] = value
    else:
        doc[segs[-1]] = value


# ------------------------------------------------------------------------------------------------------ normalisation
def canon(doc):
    """Order-insensitive parts are put in one order: managedFields entries, error causes (and the same list inside the message)."""
    if isinstance(doc, dict):
        out = {k: canon(v) for k, v in doc.items()}
        if out.get("kind") == "Table" and isinstance(out.get("columnDefinitions"), list):
            out["columnDefinitions"] = [{k: v for k, v in c.items() if k != "description"} if isinstance(c, dict) else c for c in out["columnDefinitions"]]
        if out.get("kind") == "APIResourceList" and isinstance(out.get("resources"), list):
            out["resources"].sort(key=lambda r: str(r.get("name")) if isinstance(r, dict) else "")
        mf = out.get("managedFields")
        if isinstance(mf, list):
            out["managedFields"] = sorted(mf, key=lambda e: json.dumps([e.get("operation"), e.get("manager"), e.get("apiVersion"), e.get("subresource"), e.get("fieldsV1")], sort_keys=True) if isinstance(e, dict) else "")
        if out.get("kind") == "Status" and isinstance(out.get("details"), dict) and isinstance(out["details"].get("causes"), list):
            causes = out["details"]["causes"]
            causes.sort(key=lambda c: json.dumps([c.get("field"), c.get("message"), c.get("reason")]) if isinstance(c, dict) else "")
            for c in causes:  # some messages quote the whole patched object: not worth comparing
                if isinstance(c, dict) and isinstance(c.get("message"), str):
                    c["message"] = DUMP.sub(r'\1"<object>"\2', c["message"])
            if isinstance(out.get("message"), str):
                out["message"] = DUMP.sub(r'\1"<object>"\2', out["message"])
            msg = out.get("message")
            if isinstance(msg, str) and len(causes) > 1 and all(isinstance(c, dict) for c in causes):
                pieces = sorted({f"{c.get('field')}: {c.get('message')}" if c.get("field") else str(c.get("message")) for c in causes})
                rest = msg
                for p in sorted(pieces, key=len, reverse=True):
                    rest = rest.replace(p, "\0", 1)
                m = re.fullmatch(r"(?s)(.*)\[\0(, \0)*\]", rest)
                if m and rest.count("\0") == len(pieces):
                    out["message"] = m.group(1) + "[" + ", ".join(pieces) + "]"
        return out
    if isinstance(doc, list):
        return [canon(v) for v in doc]
    return doc


def split_managed(doc, path=""):
    """Returns (document without managedFields, {path: managedFields})."""
    found = {}
    if isinstance(doc, dict):
        out = {}
        for k, v in doc.items():
            if k == "managedFields" and isinstance(v, list):
                found[path + "/managedFields"] = v
            else:
                out[k], f = split_managed(v, f"{path}/{k}")
                found.update(f)
        return out, found
    if isinstance(doc, list):
        out = []
        for i, v in enumerate(doc):
            x, f = split_managed(v, f"{path}/{i}")
            out.append(x)
            found.update(f)
        return out, found
    return doc, found


def split_message(doc):
    """Takes the human-readable texts out of a failure Status (they form a facet of their own)."""
    if not (isinstance(doc, dict) and doc.get("kind") == "Status" and doc.get("status") == "Failure"):
        return doc, None
    doc = copy.deepcopy(doc)
    text = {"message": doc.pop("message", None)}
    causes = doc.get("details", {}).get("causes") if isinstance(doc.get("details"), dict) else None
    if isinstance(causes, list):
        text["causes"] = [c.pop("message", None) if isinstance(c, dict) else None for c in causes]
    return doc, text


def parse_ts(s):
    return datetime.datetime.fromisoformat(s.replace("Z", "+00:00"))


def near_now(s):
    try:
        return abs((parse_ts(s) - datetime.datetime.now(datetime.timezone.utc)).total_seconds()) < 7200
    except ValueError:
        return False


class Symbols:
    """value -> placeholder while recording."""
    def __init__(self, run):
        self.run, self.maps, self.gen = run, {"rv": {}, "uid": {}, "gen": {}, "ip": {}}, {}

    def sym(self, kind, value):
        m = self.maps[kind]
        if value not in m:
            m[value] = "{{%s:%d}}" % (kind, len(m) + 1)
        return m[value]

    def string(self, s):
        for full, (prefix, suffix) in self.gen.items():
            if full in s:
                s = s.replace(full, prefix + self.sym("gen", suffix))
        s = s.replace(self.run, "{{run}}")
        s = re.sub(UUID, lambda m: self.sym("uid", m.group(0)), s)
        s = re.sub(MTS, lambda m: "{{microtime}}" if near_now(m.group(0)) else m.group(0), s)
        s = re.sub(TS, lambda m: "{{time}}" if near_now(m.group(0)) else m.group(0), s)
        s = re.sub(r"(ResourceVersion in (?:object meta|precondition): )(\d+)", lambda m: m.group(1) + (self.sym("rv", m.group(2)) if int(m.group(2)) > 1 else m.group(2)), s)
        s = re.sub(r"(ResourceVersion in (?:the precondition|record) \()(\d+)", lambda m: m.group(1) + self.sym("rv", m.group(2)), s)
        s = re.sub(r"(too old resource version: )(\d+) \((\d+)\)", lambda m: m.group(1) + "{{int}} ({{int}})", s)
        s = re.sub(r"(Too large resource version: )(\d+), current: (\d+)", lambda m: m.group(1) + "{{int}}, current: {{int}}", s)
        s = re.sub(r"hash=[0-9A-Fa-f]{20,}", "hash={{hash}}", s)
        return s

    def note_generated(self, doc):
        if isinstance(doc, dict):
            md = doc.get("metadata")
            if isinstance(md, dict) and isinstance(md.get("generateName"), str) and isinstance(md.get("name"), str) and md["name"].startswith(md["generateName"]):
                self.gen[md["name"]] = (md["generateName"], md["name"][len(md["generateName"]):])
            for v in doc.values():
                self.note_generated(v)
        elif isinstance(doc, list):
            for v in doc:
                self.note_generated(v)

    def doc(self, d, key=None, parent=None):
        if isinstance(d, dict):
            if d.get("kind") == "Table" and isinstance(d.get("rows"), list):
                d = copy.deepcopy(d)
                cols = d.get("columnDefinitions") or getattr(self, "last_cols", [])
                self.last_cols = cols
                for row in d["rows"]:
                    for i, c in enumerate(row.get("cells", [])):
                        if i < len(cols) and (cols[i]["name"] in ("Age", "Last Seen", "First Seen", "Duration") or cols[i]["type"] == "date") and isinstance(c, str) and re.fullmatch(AGE, c):
                            row["cells"][i] = "{{age}}"
            return {self.string(k): self.doc(v, k, d) for k, v in d.items()}
        if isinstance(d, list):
            return [self.doc(v, key, parent) for v in d]
        if isinstance(d, str):
            if key == "resourceVersion" and re.fullmatch(r"\d+", d) and d != "0":
                if parent is not None and ("uid" in parent or "name" in parent):
                    return self.sym("rv", d) if ("creationTimestamp" in parent or d in self.maps["rv"]) else d
                return "{{rv}}"
            if key == "continue" and d:
                return "{{token}}"
            if key in ("clusterIP", "clusterIPs") and re.fullmatch(PH_RE["ip"], d):
                return self.sym("ip", d)
            if key == "serverAddress":
                return "{{addr}}"
            if key == "storageVersionHash":
                return "{{hash}}"
            return self.string(d)
        return d


class Matcher:
    """expected (with placeholders) against actual; keeps bindings for the whole scenario."""
    def __init__(self, run):
        self.run, self.bind = run, {}

    def string(self, exp, act, where, out):
        if "{{" not in exp:
            if exp != act:
                out.append(f"{where}: {contrast(exp, act)}")
            return
        rx, groups, pos = "", [], 0
        for m in PH.finditer(exp):
            rx += re.escape(exp[pos:m.start()])
            pos = m.end()
            name, arg = m.group(1), m.group(2)
            if name == "run":
                rx += re.escape(self.run)
                continue
            if name not in PH_RE:
                rx += re.escape(m.group(0))
                continue
            rx += "(" + PH_RE[name] + ")"
            groups.append((name, arg))
        rx += re.escape(exp[pos:])
        m = re.fullmatch(rx, act)
        if not m:
            out.append(f"{where}: {contrast(exp, act)}")
            return
        for (name, arg), val in zip(groups, m.groups()):
            if name in ("time", "microtime") and not near_now(val):
                out.append(f"{where}: expected a timestamp near the present, got {val!r}")
            if arg is None or name not in ("rv", "uid", "gen", "ip"):
                continue
            known = self.bind.setdefault(name, {})
            if arg in known:
                if known[arg] != val:
                    out.append(f"{where}: expected the same {name} as seen before ({known[arg]}), got {val}")
                    known[arg] = val
            else:
                if val in known.values():
                    out.append(f"{where}: expected a {name} not seen before in this scenario, but {val} was already used")
                known[arg] = val

    def key(self, k):
        return PH.sub(lambda m: self.run if m.group(1) == "run" else self.bind.get(m.group(1), {}).get(m.group(2), m.group(0)), k) if "{{" in k else k

    def doc(self, exp, act, where, out):
        if isinstance(exp, str) and exp == "{{any}}":
            return
        if isinstance(exp, str) and isinstance(act, str):
            return self.string(exp, act, where, out)
        if isinstance(exp, dict) and isinstance(act, dict):
            exp = {self.key(k): v for k, v in exp.items()}
            for k in exp:
                if k not in act:
                    out.append(f"{where}/{k}: missing, expected {brief(exp[k])}")
                else:
                    self.doc(exp[k], act[k], f"{where}/{k}", out)
            for k in act:
                if k not in exp:
                    out.append(f"{where}/{k}: unexpected, got {brief(act[k])}")
            return
        if isinstance(exp, list) and isinstance(act, list):
            if len(exp) != len(act):
                out.append(f"{where}: expected {len(exp)} elements, got {len(act)}: expected {brief(exp)}, got {brief(act)}")
            for i, (e, a) in enumerate(zip(exp, act)):
                self.doc(e, a, f"{where}/{i}", out)
            return
        if type(exp) is not type(act) or exp != act:
            out.append(f"{where}: expected {brief(exp)}, got {brief(act)}")


def contrast(exp, act):
    """Two strings; long ones are cut around the first difference."""
    if len(exp) + len(act) < 300:
        return f"expected {exp!r}, got {act!r}"
    i = next((k for k, (a, b) in enumerate(zip(exp, act)) if a != b), min(len(exp), len(act)))
    i = max(0, i - 40)
    cut = lambda s: ("…" if i else "") + s[i:i + 160] + ("…" if len(s) > i + 160 else "")
    return f"expected {cut(exp)!r}, got {cut(act)!r}"


def brief(v, n=160):
    s = json.dumps(v, ensure_ascii=False)
    return s if len(s) <= n else s[:n] + "…"


# ---------------------------------------------------------------------------------------------------------------- HTTP
class Client:
    def __init__(self, server, tokens, ca=None, insecure=False):
        u = urllib.parse.urlsplit(server)
        self.scheme, self.host, self.port, self.base, self.tokens = u.scheme, u.hostname, u.port, u.path.rstrip("/"), tokens
        self.ctx = None
        if u.scheme == "https":
            self.ctx = ssl.create_default_context(cafile=ca)
            if insecure:
                self.ctx.check_hostname, self.ctx.verify_mode = False, ssl.CERT_NONE
        self.local = threading.local()

    def connect(self, timeout):
        if self.scheme == "https":
            return http.client.HTTPSConnection(self.host, self.port or 443, context=self.ctx, timeout=timeout)
        return http.client.HTTPConnection(self.host, self.port or 80, timeout=timeout)

    def headers(self, who, extra):
        h = {"Accept": "application/json", "User-Agent": "corpus-replay"}
        if who == "anonymous":
            pass
        elif who == "bad":
            h["Authorization"] = "Bearer this-token-is-not-known"
        elif who in self.tokens:
            if self.tokens[who]:
                h["Authorization"] = "Bearer " + self.tokens[who]
        else:
            raise Skip(f"no token for user {who!r} (--token-for {who}=…)")
        h.update(extra or {})
        return h

    def request(self, method, path, body=None, headers=None, who="admin", timeout=60):
        h = self.headers(who, headers)
        if body is not None:
            h.setdefault("Content-Type", "application/json")
        for attempt in (0, 1):
            conn = getattr(self.local, "conn", None)
            fresh = conn is None
            if fresh:
                conn = self.local.conn = self.connect(timeout)
            try:
                conn.request(method, self.base + path, body=body, headers=h)
                r = conn.getresponse()
                data = r.read()
                if r.will_close:
                    self.local.conn = None
                return r.status, r.headers, data
            except (http.client.HTTPException, OSError):
                conn.close()
                self.local.conn = None
                if fresh or attempt:
                    raise

    def watch(self, path, headers, who, count, timeout, sink):
        """Reads events into sink (a queue); ends with ('end', why)."""
        h = self.headers(who, headers)
        conn = self.connect(timeout)
        deadline = time.monotonic() + timeout
        try:
            conn.request("GET", self.base + path, headers=h)
            sock = conn.sock
            r = conn.getresponse()
            sink.put(("start", r.status, r.headers))
            if r.status != 200:
                sink.put(("body", r.read()))
                sink.put(("end", "refused"))
                return
            n = 0
            while count is None or n < count:
                left = deadline - time.monotonic()
                if left <= 0:
                    sink.put(("end", "timeout"))
                    return
                sock.settimeout(left)
                line = r.readline()
                if not line:
                    sink.put(("end", "closed"))
                    return
                if line.strip():
                    sink.put(("event", json.loads(line)))
                    n += 1
            sink.put(("end", "count"))
        except (TimeoutError, ssl.SSLError, OSError) as e:
            sink.put(("end", "timeout" if "timed out" in str(e) else f"error {e!r}"))
        except (http.client.HTTPException, ValueError) as e:
            sink.put(("end", f"error {e!r}"))
        finally:
            conn.close()


# ------------------------------------------------------------------------------------------------------------- running
class Runner:
    def __init__(self, client, scenario, record=False):
        self.c, self.s, self.record = client, scenario, record
        self.run = "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=8))
        self.sym, self.match, self.saved_headers, self.saved, self.watches, self.finalized, self.born = Symbols(self.run), Matcher(self.run), {}, {}, {}, set(), {}

    # -- templates in requests
    def tmpl(self, v):
        if isinstance(v, str):
            def sub(m):
                name = m.group(1).strip()
                if name == "run":
                    return self.run
                if re.fullmatch(r"ns\d?", name):
                    return f"{name}-{self.run}"
                if name.startswith("repeat "):
                    _, n, text = name.split(" ", 2)
                    return text * int(n)
                kind, _, ref = name.partition(".")
                if kind == "header":
                    return self.saved_headers.get(ref, "missing-" + ref)
                ident, _, path = ref.partition("/")
                doc = self.saved.get(ident)
                path = {"rv": "metadata/resourceVersion", "uid": "metadata/uid", "name": "metadata/name"}.get(kind, path)
                val = lookup(doc, path) if doc is not None else "{{missing}}"
                return "missing-" + ident if val == "{{missing}}" else str(val)
            return re.sub(r"\{\{([^}]+)\}\}", sub, v)
        if isinstance(v, dict):
            return {self.tmpl(k): self.tmpl(x) for k, x in v.items()}
        if isinstance(v, list):
            return [self.tmpl(x) for x in v]
        return v

    def url(self, st):
        path = self.tmpl(st["path"])
        q = st.get("query")
        if q:
            pairs = []
            for k, v in q.items():
                for x in (v if isinstance(v, list) else [v]):
                    pairs.append((k, self.tmpl(str(x).lower() if isinstance(x, bool) else str(x))))
            path += "?" + urllib.parse.urlencode(pairs)
        return path

    def payload(self, st):
        if "raw" in st:
            return self.tmpl(st["raw"]).encode()
        if "raw_b64" in st:
            return base64.b64decode(st["raw_b64"])
        if "body_from" in st:
            bf = st["body_from"]
            doc = copy.deepcopy(self.saved.get(bf["step"]) or {})
            for p in bf.get("unset", []):
                remove(doc, p)
            for p, v in bf.get("set", {}).items():
                assign(doc, p, self.tmpl(v))
            return json.dumps(doc).encode()
        if "body" in st:
            return json.dumps(self.tmpl(st["body"])).encode()
        return None

    @staticmethod
    def decode(headers, data):
        ct = headers.get("Content-Type", "") or ""
        if "json" in ct or data[:1] == b"{":
            try:
                return json.loads(data)
            except ValueError:
                return data.decode("utf-8", "replace")
        if "yaml" in ct:
            try:
                return yaml.load(data, Loader=LOADER)
            except yaml.YAMLError:
                pass
        return data.decode("utf-8", "replace")

    def call(self, st):
        return self.c.request(st["method"], self.url(st), self.payload(st), self.tmpl(st.get("headers") or {}), st.get("as", "admin"))

    def answered(self, st, status, body):
        u = st["until"]
        if "status" in u and status != u["status"]:
            return False
        if "path" in u:
            v = lookup(body, self.tmpl(u["path"]))
            if "equals" in u:
                return v == self.tmpl(u["equals"])
            return (v == "{{missing}}") == bool(u.get("missing"))
        return True

    def execute(self, st):
        """Runs one step and returns {'status','headers','body'|'events'|'extract'} in raw form."""
        if st["method"] == "SLEEP":
            time.sleep(st["seconds"])
            return {}
        if st["method"] == "WATCH":
            return self.exec_watch(st)
        if st["method"] == "COLLECT":
            return self.collect(self.watches[st["watch"]], st)
        if st["method"] == "PARALLEL":
            return self.exec_parallel(st)
        deadline = time.monotonic() + (st.get("until") or {}).get("timeout", 60)
        while True:
            status, headers, data = self.call(st)
            body = self.decode(headers, data)
            if "until" not in st or self.answered(st, status, body) or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if st.get("id"):
            for k, v in headers.items():
                self.saved_headers[f"{st['id']}/{k}"] = v
        if isinstance(body, dict):
            if st.get("id"):
                self.saved[st["id"]] = body
            md = body.get("metadata")
            if isinstance(md, dict) and md.get("finalizers") and st["method"] in ("POST", "PUT", "PATCH"):
                p = self.tmpl(st["path"])
                self.finalized.add(p if st["method"] != "POST" else p + "/" + md.get("name", ""))
        return self.shape(st, status, headers, body)

    def shape(self, st, status, headers, body):
        got = {"status": status, "contentType": headers.get("Content-Type"), "warning": sorted(headers.get_all("Warning") or [])}
        if headers.get("Retry-After") is not None:
            got.setdefault("headers", {})["Retry-After"] = headers.get("Retry-After")
        for h in st.get("check_headers") or []:  # presence only, the value differs from server to server
            got.setdefault("headers", {})[h] = "present" if headers.get(h) else "absent"
        if "extract" in st and status < 300:
            got["extract"] = {k: canon(lookup(body, self.tmpl(p))) for k, p in st["extract"].items()}
        elif not st.get("no_body"):
            got["body"] = self.strip(st, canon(body))
        self.raw_body = body
        return got

    def strip(self, st, body):
        body = copy.deepcopy(body)
        for p in (self.s.get("ignore") or []) + (st.get("ignore") or []):
            remove(body, p)
        return body

    def exec_parallel(self, st):
        """Sends `count` copies of a request at the same time ({{i}} = number of the copy); only the sorted statuses are compared."""
        out = []

        def one(i):
            req = json.loads(json.dumps(st["request"]).replace("{{i}}", str(i)))
            try:
                out.append(self.call(req)[0])
            except Exception as e:
                out.append(repr(e))
        ts = [threading.Thread(target=one, args=(i,)) for i in range(st["count"])]
        [t.start() for t in ts]
        [t.join() for t in ts]
        self.raw_body = None
        return {"status": 0, "contentType": None, "warning": [], "extract": {"statuses": sorted(out, key=str)}}

    def exec_watch(self, st):
        q = queue.Queue()
        t = threading.Thread(target=self.c.watch, args=(self.url(st), self.tmpl(st.get("headers") or {}), st.get("as", "admin"), st.get("count"), st.get("timeout", 20), q), daemon=True)
        t.start()
        w = {"q": q, "thread": t}
        if st.get("background"):
            self.watches[st["background"]] = w
            first = q.get(timeout=30)
            w["first"] = first
            if first[0] != "start":
                return {"status": 0, "contentType": None, "warning": [], "body": str(first)}
            return {"status": first[1], "contentType": first[2].get("Content-Type"), "warning": sorted(first[2].get_all("Warning") or [])}
        return self.collect(w, st)

    def collect(self, w, st):
        first = w.pop("first", None) or w["q"].get(timeout=st.get("timeout", 20) + 30)
        if first[0] != "start":
            return {"status": 0, "contentType": None, "warning": [], "body": str(first)}
        got = {"status": first[1], "contentType": first[2].get("Content-Type"), "warning": sorted(first[2].get_all("Warning") or []), "events": []}
        deadline = time.monotonic() + st.get("timeout", 20) + 5
        while st.get("count") is None or len(got["events"]) < st["count"]:
            try:
                item = w["q"].get(timeout=max(0.1, deadline - time.monotonic()))
            except queue.Empty:
                got["end"] = "timeout"
                break
            if item[0] == "event":
                ev = item[1]
                if isinstance(ev, dict) and ev.get("type") == "BOOKMARK" and st.get("skip_bookmarks", not st.get("bookmarks")):
                    continue
                ev = canon(ev)
                if isinstance(ev, dict) and "object" in ev:
                    ev["object"] = self.strip(st, ev["object"])
                got["events"].append(ev)
            elif item[0] == "body":
                try:
                    got["body"] = canon(json.loads(item[1]))
                except ValueError:
                    got["body"] = item[1].decode("utf-8", "replace")
            else:
                got["end"] = item[1]
                break
        else:
            got["end"] = "count"
        if got.get("end") == "refused":
            got.pop("events")
        if st.get("unordered") and "events" in got:
            got["events"].sort(key=lambda e: json.dumps([e.get("type"), lookup(e, "object/metadata/namespace"), lookup(e, "object/metadata/name")]))
        self.raw_body = [e.get("object") for e in got.get("events", [])]
        return got

    # -- global invariants on real (non placeholder) values
    def invariants(self, body, out):
        def walk(n):
            if isinstance(n, dict):
                md = n.get("metadata")
                if isinstance(md, dict):
                    if isinstance(md.get("uid"), str) and isinstance(md.get("creationTimestamp"), str):
                        was = self.born.setdefault(md["uid"], md["creationTimestamp"])
                        if was != md["creationTimestamp"]:
                            out.append(f"creationTimestamp of {md.get('name')} changed from {was} to {md['creationTimestamp']}")
                    rv = md.get("resourceVersion")
                    if isinstance(n.get("items"), list) and isinstance(rv, str) and rv.isdigit():
                        for i in n["items"]:
                            irv = lookup(i, "metadata/resourceVersion")
                            if isinstance(irv, str) and irv.isdigit() and int(irv) > int(rv):
                                out.append(f"list resourceVersion {rv} is older than item resourceVersion {irv}")
                for v in n.values():
                    walk(v)
            elif isinstance(n, list):
                for v in n:
                    walk(v)
        walk(body)

    def expectation(self, st, got):
        """Recording: raw -> placeholders."""
        if not got:
            return None
        for k in ("body", "events", "extract"):
            if k in got:
                self.sym.note_generated(got[k])
        exp = {"status": got["status"]}
        h = dict(got.get("headers") or {})
        if got.get("contentType"):
            h["Content-Type"] = got["contentType"]
        if got.get("warning"):
            h["Warning"] = self.sym.doc(got["warning"])
        if h:
            exp["headers"] = {k: self.sym.doc(v) for k, v in h.items()}
        if "extract" in got:
            exp["extract"] = self.sym.doc(got["extract"])
        if "body" in got:
            exp["body"] = self.sym.doc(got["body"])
        if "events" in got:
            exp["events"] = self.sym.doc(got["events"])
        if "end" in got:
            exp["end"] = got["end"]
        for p in st.get("any") or []:
            root = exp.get("body") if "body" in exp else exp.get("extract")
            if lookup(root, p) != "{{missing}}":
                assign(root, p, "{{any}}")
        return exp

    def compare(self, st, exp, got):
        """-> {facet: [differences]} for facets that were checked."""
        res = {"core": []}
        core = res["core"]
        if exp is None:
            return res
        if exp["status"] != got["status"]:
            core.append(f"status: expected {exp['status']}, got {got['status']}" + (f" ({brief(lookup(got.get('body'), 'message'), 300)})" if isinstance(got.get("body"), dict) and got["status"] >= 400 else ""))
        eh = exp.get("headers") or {}
        if "Content-Type" in eh:
            res["contentType"] = []
            e, g = norm_ct(eh["Content-Type"]), norm_ct(got.get("contentType") or "")
            if e != g:
                res["contentType"].append(f"Content-Type: expected {eh['Content-Type']!r}, got {got.get('contentType')!r}")
        if eh.get("Warning") or got.get("warning"):
            res["warning"] = []
            self.match.doc(eh.get("Warning") or [], got.get("warning") or [], "Warning", res["warning"])
        for k, v in eh.items():
            if k not in ("Content-Type", "Warning"):
                self.match.doc(v, (got.get("headers") or {}).get(k), "header " + k, core)
        if "end" in exp and exp["end"] != got.get("end"):
            core.append(f"watch end: expected {exp['end']!r}, got {got.get('end')!r}")
        for k in ("extract", "body", "events"):
            if k in exp:
                if k not in got:
                    core.append(f"{k}: expected {brief(exp[k])}, got nothing" + (f" but body {brief(got['body'])}" if "body" in got else ""))
                    continue
                e, em = split_managed(canon(exp[k]))
                g, gm = split_managed(got[k])
                if k == "body":
                    (e, et), (g, gt) = split_message(e), split_message(g)
                    if et is not None:
                        res["message"] = []
                        self.match.doc(et, gt, "", res["message"])
                self.match.doc(e, g, "" if k == "body" else k, core)
                if em or gm:
                    res.setdefault("managedFields", [])
                    self.match.doc(em, gm, "", res["managedFields"])
        return res

    def go(self):
        results = []
        name = self.s["name"]
        try:
            for ns in self.s.get("namespaces", ["ns"]):
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{ns}-{self.run}", "labels": {"corpus": "yes"}}}
                status, _, data = self.c.request("POST", "/api/v1/namespaces", json.dumps(body).encode())
                if status not in (200, 201):
                    raise RuntimeError(f"cannot create namespace: {status} {data[:300]!r}")
            for i, st in enumerate(self.s["steps"]):
                prio = st.get("priority", self.s.get("priority", "should"))
                r = {"scenario": name, "step": i + 1, "id": st.get("id"), "desc": st.get("desc", ""), "request": f"{st['method']} {st.get('path', '')}", "priority": prio, "facets": {}, "message_priority": st.get("message_priority", "must")}
                try:
                    got = self.execute(st)
                except Skip as e:
                    r["skip"] = str(e)
                    results.append(r)
                    continue
                except Exception as e:  # a broken connection is a failed step, not the end of the run
                    r["facets"]["core"] = [f"request failed: {e!r}"]
                    results.append(r)
                    if self.record:
                        raise
                    continue
                if self.record:
                    st.pop("expect", None)
                    exp = self.expectation(st, got)
                    if exp is not None:
                        st["expect"] = exp
                elif got:
                    r["facets"] = self.compare(st, st.get("expect"), got)
                    self.invariants(self.raw_body, r["facets"]["core"])
                if st["method"] != "SLEEP":
                    results.append(r)
        finally:
            self.cleanup()
        return results

    def cleanup(self):
        for p in sorted(self.finalized):
            try:
                st, _, _ = self.c.request("GET", p)
                if st == 200:
                    self.c.request("PATCH", p, b'{"metadata":{"finalizers":null}}', {"Content-Type": "application/merge-patch+json"})
            except Exception:
                pass
        if "Pod" in self.s.get("kinds", []):  # without a kubelet nobody else would finish pods that have a nodeName
            for ns in self.s.get("namespaces", ["ns"]):
                base = f"/api/v1/namespaces/{ns}-{self.run}/pods"
                try:
                    for i in json.loads(self.c.request("GET", base)[2]).get("items", []):
                        self.c.request("DELETE", f"{base}/{i['metadata']['name']}", b'{"gracePeriodSeconds":0}')
                except Exception:
                    pass
        paths = [self.tmpl(p) for p in self.s.get("cleanup", [])] + [f"/api/v1/namespaces/{ns}-{self.run}" for ns in self.s.get("namespaces", ["ns"])]
        for p in paths:
            try:
                self.c.request("DELETE", p, b'{"propagationPolicy":"Background"}')
            except Exception:
                pass


def norm_ct(v):
    parts = [p.strip() for p in v.split(";")]
    return [parts[0].lower()] + sorted(p for p in parts[1:] if not p.lower().startswith("charset"))


def verdict(r, facet_prio):
    """(priority of the worst failing facet or None, differences)"""
    worst, diffs = None, []
    for facet, d in r["facets"].items():
        if d:
            p = r.get("message_priority", "must") if facet == "message" else facet_prio.get(facet, "must")
            p = PRIOS[max(PRIOS.index(r["priority"]), PRIOS.index(p))]
            worst = p if worst is None or PRIOS.index(p) < PRIOS.index(worst) else worst
            diffs += [f"[{facet}/{p}] {x}" for x in d]
    return worst, diffs


# ------------------------------------------------------------------------------------------------- CRDs used by scenarios
KIND_PATHS = {"Widget": "/apis/corpus.example.com/v1/widgets", "Gadget": "/apis/corpus.example.com/v1/gadgets", "TrainJob": "/apis/trainer.kubeflow.org/v1alpha1/trainjobs",
              "TrainingRuntime": "/apis/trainer.kubeflow.org/v1alpha1/trainingruntimes", "ClusterTrainingRuntime": "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes",
              "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/jobsets"}


def prepare(client, scenarios, dirs):
    """Installs missing CRDs from the given directories; returns (installed CRD paths, {kind: reason it is not available})."""
    crds, installed, missing = {}, [], {}
    for d in dirs:
        for f in sorted(os.listdir(d)) if os.path.isdir(d) else [os.path.basename(d)]:
            if f.endswith((".yaml", ".yml")):
                with open(os.path.join(d, f) if os.path.isdir(d) else d) as fh:
                    for doc in yaml.load_all(fh, Loader=LOADER):
                        if isinstance(doc, dict) and doc.get("kind") == "CustomResourceDefinition":
                            crds[doc["spec"]["names"]["kind"]] = doc
    for kind in sorted({k for s in scenarios for k in s.get("kinds", [])}):
        path = KIND_PATHS.get(kind)
        if not path or client.request("GET", path + "?limit=1")[0] == 200:
            continue
        if kind not in crds:
            missing[kind] = f"{kind} is not served and no CRD for it was given (--crds)"
            continue
        st, _, data = client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json.dumps(crds[kind]).encode())
        if st not in (200, 201, 409):
            missing[kind] = f"CRD for {kind} refused: {st} {data[:200]!r}"
            continue
        if st != 409:
            installed.append("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + crds[kind]["metadata"]["name"])
        for _ in range(300):
            if client.request("GET", path + "?limit=1")[0] == 200:
                break
            time.sleep(0.1)
    # warm up: one write must be possible before the first scenario runs
    time.sleep(1 if installed else 0)
    return installed, missing


def load(paths, only=None):
    files = []
    for p in paths:
        files += [os.path.join(p, f) for f in sorted(os.listdir(p)) if f.endswith(".yaml")] if os.path.isdir(p) else [p]
    out = []
    for f in files:
        name = os.path.basename(f)[:-5]
        if only and not any(fnmatch.fnmatch(name, o) or o in name for o in only.split(",")):
            continue
        with open(f) as fh:
            s = yaml.load(fh, Loader=LOADER)
        s["name"], s["file"] = name, f
        out.append(s)
    return out


def common_args(ap):
    here = os.path.dirname(os.path.abspath(__file__))
    ap.add_argument("--server", required=True)
    ap.add_argument("--token", default=os.environ.get("CORPUS_TOKEN", ""))
    ap.add_argument("--token-for", action="append", default=[], metavar="USER=TOKEN", help="token of a further user used by authz scenarios (bob: no rights at all)")
    ap.add_argument("--ca")
    ap.add_argument("--insecure", action="store_true")
    ap.add_argument("--only", help="comma separated glob patterns or substrings of scenario names")
    ap.add_argument("--crds", action="append", default=[os.path.join(here, "crds")], help="further directories with CRDs to install when a kind is not served")
    ap.add_argument("--keep-crds", action="store_true", help="leave CRDs installed by this run in place")
    ap.add_argument("-j", "--jobs", type=int, default=1)
    ap.add_argument("scenarios", nargs="+")


def make_client(a):
    tokens = {"admin": a.token}
    tokens.update(t.split("=", 1) for t in a.token_for)
    return Client(a.server, tokens, a.ca, a.insecure)


def run_all(client, scenarios, jobs, one):
    todo, lock, results = list(scenarios), threading.Lock(), []

    def work():
        while True:
            with lock:
                if not todo:
                    return
                s = todo.pop(0)
            try:
                r = one(s)
            except Exception as e:
                r = [{"scenario": s["name"], "step": 0, "desc": "", "request": "", "priority": s.get("priority", "should"), "facets": {"core": [f"scenario aborted: {e!r}"]}}]
            with lock:
                results.append((s, r))
    threads = [threading.Thread(target=work) for _ in range(max(1, jobs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    common_args(ap)
    ap.add_argument("--priority", choices=PRIOS, help="judge only checks of this priority or higher")
    ap.add_argument("--shuffle", action="store_true", help="random scenario order")
    ap.add_argument("--seed", type=int, help="seed for --shuffle")
    ap.add_argument("--reverse", action="store_true")
    ap.add_argument("--json", dest="json_out")
    ap.add_argument("--max-diffs", type=int, default=20, help="failing steps shown in detail")
    a = ap.parse_args()
    client, scenarios = make_client(a), load(a.scenarios, a.only)
    if a.shuffle:
        seed = a.seed if a.seed is not None else random.randrange(10 ** 6)
        random.Random(seed).shuffle(scenarios)
        print(f"order: shuffled with seed {seed}")
    if a.reverse:
        scenarios.reverse()
    installed, missing = prepare(client, scenarios, a.crds)
    start = time.time()

    def one(s):
        lack = [missing[k] for k in s.get("kinds", []) if k in missing]
        if lack:
            return [{"scenario": s["name"], "step": i + 1, "desc": "", "request": "", "priority": st.get("priority", s.get("priority", "should")), "facets": {}, "skip": lack[0]} for i, st in enumerate(s["steps"])]
        return Runner(client, s).go()
    results = run_all(client, scenarios, a.jobs, one)
    if installed and not a.keep_crds:
        for p in installed:
            client.request("DELETE", p)
    limit = PRIOS.index(a.priority) if a.priority else 2
    table, fails, skips, must_failed, dump = {}, [], {}, 0, []
    for s, rs in results:
        topic = s["name"].split("-")[0]
        t = table.setdefault(topic, {p: [0, 0] for p in PRIOS} | {"skip": 0, "n": 0})
        t["n"] += 1
        fp = dict(FACET_PRIO, **(s.get("facets") or {}))
        for r in rs:
            if PRIOS.index(r["priority"]) > limit:
                continue
            if "skip" in r:
                t["skip"] += 1
                skips[r["skip"]] = skips.get(r["skip"], 0) + 1
                dump.append(dict(r, result="skip"))
                continue
            worst, diffs = verdict(r, fp)
            if worst and PRIOS.index(worst) > limit:
                worst = None
            if worst:
                fails.append((r, worst, diffs))
                must_failed += worst == "must"
                t[worst][1] += 1
            else:
                t[r["priority"]][0] += 1
            dump.append(dict(r, result="fail" if worst else "pass", failed_priority=worst))
    fails.sort(key=lambda f: (f[0]["scenario"], f[0]["step"]))
    for r, worst, diffs in fails[:a.max_diffs]:
        print(f"\nFAIL {r['scenario']} step {r['step']} ({worst}) {r['request']}\n     {r['desc']}")
        for d in diffs[:6]:
            print("     - " + d)
        if len(diffs) > 6:
            print(f"     … and {len(diffs) - 6} more differences")
    if len(fails) > a.max_diffs:
        print(f"\n… and {len(fails) - a.max_diffs} more failing steps (--max-diffs, --json)")
    print(f"\n{'topic':<18}{'scenarios':>10}" + "".join(f"{p + ' ok':>11}{'fail':>6}" for p in PRIOS) + f"{'skip':>6}")
    tot = {p: [0, 0] for p in PRIOS} | {"skip": 0, "n": 0}
    for topic in sorted(table):
        t = table[topic]
        print(f"{topic:<18}{t['n']:>10}" + "".join(f"{t[p][0]:>11}{t[p][1]:>6}" for p in PRIOS) + f"{t['skip']:>6}")
        for k in ("skip", "n"):
            tot[k] += t[k]
        for p in PRIOS:
            tot[p][0] += t[p][0]
            tot[p][1] += t[p][1]
    print(f"{'TOTAL':<18}{tot['n']:>10}" + "".join(f"{tot[p][0]:>11}{tot[p][1]:>6}" for p in PRIOS) + f"{tot['skip']:>6}")
    passed, failed = sum(tot[p][0] for p in PRIOS), sum(tot[p][1] for p in PRIOS)
    print(f"{passed} steps passed, {failed} failed ({must_failed} of them must), {tot['skip']} skipped, {time.time() - start:.1f} s")
    for why, n in sorted(skips.items()):
        print(f"skipped {n} steps: {why}")
    if a.json_out:
        with open(a.json_out, "w") as fh:
            json.dump({"passed": passed, "failed": failed, "must_failed": must_failed, "skipped": tot["skip"], "steps": dump}, fh, indent=1)
    sys.exit(1 if must_failed else 0)


if __name__ == "__main__":
    main()
