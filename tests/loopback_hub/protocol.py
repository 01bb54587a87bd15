"""The Hub's answers: what each request of the real clients gets. One call at a time (the server holds a lock)."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, quote

import yaml
from starlette.responses import JSONResponse, RedirectResponse, Response

from . import cards
from .repository import (
    REGULAR_LIMIT,
    Commit,
    File,
    HubError,
    Kind,
    Repo,
    default_attributes,
    goes_by_lfs,
    parents,
    tracked,
)

KINDS: Mapping[str, Kind] = {"models": "model", "datasets": "dataset", "spaces": "space"}
NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?", re.ASCII)


@dataclass(frozen=True)
class User:
    """Who holds a token. ``orgs`` maps an organisation to the rights in it, ``role`` is the token's."""

    name: str
    token: str
    orgs: Mapping[str, str]
    role: str

    def may_write(self, repo_id: str) -> bool:
        namespace = repo_id.partition("/")[0]
        return self.role == "write" and (namespace == self.name or self.orgs.get(namespace) in ("write", "admin"))

    def may_read(self, repo_id: str) -> bool:
        namespace = repo_id.partition("/")[0]
        return namespace == self.name or namespace in self.orgs


@dataclass(frozen=True)
class Call:
    """A request: the parts of its path are unquoted one by one, so that a quoted slash stays inside a part."""

    method: str
    parts: list[str]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    cdn: bool = False

    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    def flag(self, name: str) -> bool:
        return self.query.get(name, [""])[-1].lower() in ("1", "true")


class NotKnown(Exception):
    """The loopback does not speak this part of the protocol."""


@dataclass
class Protocol:
    """All of the Hub's state."""

    endpoint: str = ""
    cdn: str = ""
    users: dict[str, User] = field(default_factory=dict)
    repos: dict[tuple[Kind, str], Repo] = field(default_factory=dict)
    jobs: list[dict[str, Any]] = field(default_factory=list)

    # -- who may what ------------------------------------------------------------------------------------------------

    def user(self, call: Call) -> User | None:
        given = call.headers.get("authorization")
        if given is None:
            return None
        user = self.users.get(given.removeprefix("Bearer "))
        if user is None:
            raise HubError(401, "Invalid credentials in Authorization header")
        return user

    def known(self, call: Call) -> User:
        if (user := self.user(call)) is None:
            raise HubError(401, "Invalid username or password.")
        return user

    def find(self, call: Call, kind: Kind, repo_id: str, *, write: bool = False) -> Repo:
        """The repository, where the caller may read (write) it. One he may not see is answered as if it were not."""
        user, repo = self.user(call), self.repos.get((kind, repo_id))
        if repo is None or (repo.private and not (user and user.may_read(repo_id))):
            if user is None:
                raise HubError(401, "Invalid username or password.", "RepoNotFound")
            raise HubError(404, "Repository not found", "RepoNotFound")
        if write:
            self.writer(call, repo_id, f"write to the {kind} {repo_id}")
        return repo

    def writer(self, call: Call, repo_id: str, what: str) -> User:
        user = self.known(call)
        if user.role != "write":
            raise HubError(403, "Forbidden: you must use a write token")
        if not user.may_write(repo_id):
            namespace = repo_id.partition("/")[0]
            raise HubError(403, f'You don\'t have the rights to {what} under the namespace "{namespace}"')
        return user

    # -- the routes --------------------------------------------------------------------------------------------------

    def answer(self, call: Call) -> Response:
        """Raises HubError for a refusal and NotKnown for what the loopback does not speak."""
        if call.cdn:
            return self.storage(call)
        match call.method, call.parts:
            case "GET", ["api", "whoami-v2"]:
                return self.whoami(call)
            case "GET", ["api", "agent-harnesses"]:
                return JSONResponse({"standardEnvVars": [], "harnesses": {}})
            case "POST", ["api", "repos", "create"]:
                return self.create(call)
            case "POST", ["api", "jobs" | "scheduled-jobs", namespace]:
                return self.job(call, namespace)
            case "POST", ["api", "validate-yaml"]:
                return self.validate_yaml(call)
            case _, ["api", kinds, owner, name, *rest] if kinds in KINDS:
                if (response := self.of_repo(call, KINDS[kinds], f"{owner}/{name}", rest)) is not None:
                    return response
                self.find(call, KINDS[kinds], f"{owner}/{name}")
            case _, ["api", kinds, name] if kinds in KINDS:
                self.find(call, KINDS[kinds], name)
            case _, parts:
                kind, parts = (KINDS[parts[0]], parts[1:]) if parts and parts[0] in KINDS else ("model", parts)
                match call.method, parts:
                    case "POST", [owner, git, "info", "lfs", "objects", "batch"] if git.endswith(".git"):
                        return self.lfs_batch(call, kind, f"{owner}/{git.removesuffix('.git')}")
                    case "POST", [owner, git, "info", "lfs", "objects", "verify"] if git.endswith(".git"):
                        return self.lfs_verify(call, kind, f"{owner}/{git.removesuffix('.git')}")
                    case "GET" | "HEAD", [owner, name, "resolve", "refs", where, ref, *path] if path:
                        return self.resolve(call, kind, f"{owner}/{name}", f"refs/{where}/{ref}", "/".join(path))
                    case "GET" | "HEAD", [owner, name, "resolve", revision, *path] if path:
                        return self.resolve(call, kind, f"{owner}/{name}", revision, "/".join(path))
                    case "GET" | "HEAD", [name, "resolve", _, *path] if path:
                        self.find(call, kind, name)
        raise NotKnown

    def of_repo(self, call: Call, kind: Kind, repo_id: str, rest: list[str]) -> Response | None:
        match call.method, rest:
            case "GET", []:
                return self.info(call, self.find(call, kind, repo_id), "main")
            case "GET", ["revision", revision]:
                return self.info(call, self.find(call, kind, repo_id), revision)
            case "GET", ["auth-check"]:
                self.find(call, kind, repo_id)
                return JSONResponse({})
            case "GET", ["auth-check", "write"]:
                self.find(call, kind, repo_id, write=True)
                return JSONResponse({})
            case "GET", ["refs"]:
                return self.refs(call, self.find(call, kind, repo_id))
            case "GET", ["tree", revision, *path]:
                return self.tree(call, self.find(call, kind, repo_id), revision, "/".join(path))
            case "POST", ["paths-info", revision]:
                return self.paths_info(call, self.find(call, kind, repo_id), revision)
            case "GET", ["discussions"]:
                return self.discussions(call, self.find(call, kind, repo_id))
            case "POST", ["discussions", number, "merge"]:
                return self.merge(call, self.find(call, kind, repo_id, write=True), int(number))
            case "GET", ["leaderboard"] if kind == "dataset":
                return self.leaderboard(call, self.find(call, kind, repo_id))
            case "POST", ["preupload", revision]:
                write = not call.flag("create_pr")
                return self.preupload(call, self.find(call, kind, repo_id, write=write), revision)
            case "POST", ["commit", revision]:
                write = not call.flag("create_pr")
                return self.commit(call, self.find(call, kind, repo_id, write=write), revision)
            case "POST", ["tag", revision]:
                return self.create_tag(call, self.find(call, kind, repo_id, write=True), revision)
        return None

    # -- accounts and repositories -----------------------------------------------------------------------------------

    def whoami(self, call: Call) -> Response:
        user = self.known(call)
        orgs = [{"type": "org", "name": name, "roleInOrg": role} for name, role in user.orgs.items()]
        token = {"type": "access_token", "accessToken": {"displayName": "loopback", "role": user.role}}
        return JSONResponse({"type": "user", "name": user.name, "fullname": user.name, "orgs": orgs, "auth": token})

    def job(self, call: Call, namespace: str) -> Response:
        """A job to run or schedule, which is kept and not started."""
        self.writer(call, f"{namespace}/", "run jobs")
        self.jobs.append(call.json())
        number = {"id": f"{len(self.jobs):024x}", "createdAt": "2022-01-01T00:00:00.000Z"}
        owner = {"owner": {"id": "0" * 24, "name": namespace, "type": "user"}, "status": {"stage": "SCHEDULING"}}
        return JSONResponse(number | owner | self.jobs[-1])

    def create(self, call: Call) -> Response:
        given, kinds = call.json(), {known: known for known in KINDS.values()}
        if (kind := kinds.get(given.get("type") or "model")) is None:
            raise HubError(400, f'"type" must be one of {list(kinds)}')
        user, name = self.user(call), given.get("name") or ""
        namespace = given.get("organization") or (user.name if user else "")
        if not NAME.fullmatch(name) or "--" in name or ".." in name or name.endswith((".git", ".ipynb")):
            raise HubError(400, f"Invalid repo name: {namespace}/{name}")
        sdk = given.get("sdk")
        if kind == "space" and sdk not in cards.SDKS:
            raise HubError(400, f'"sdk" must be one of {list(cards.SDKS)}')
        user = self.writer(call, f"{namespace}/{name}", f"create a {kind}")
        url = self.page(kind, f"{namespace}/{name}")
        if (kind, f"{namespace}/{name}") in self.repos:
            raise HubError(409, f"You already created this {kind} repo", url=url)
        private = given.get("visibility") == "private" or bool(given.get("private"))
        repo = self.new(kind, f"{namespace}/{name}", private=private, sdk=sdk, author=user.name)
        return JSONResponse({"url": url, "name": repo.repo_id, "id": repo.resolve("main").oid[:24]})

    def new(
        self, kind: Kind, repo_id: str, *, private: bool = False, sdk: str | None = None, author: str = "someone"
    ) -> Repo:
        """A repository with the commit that the Hub makes."""
        repo = self.repos[kind, repo_id] = Repo(kind, repo_id, private=private, sdk=sdk)
        tree = {".gitattributes": File(default_attributes(kind))}
        if kind == "space":
            name = json.dumps(repo_id.partition("/")[2])
            readme = f"---\ntitle: {name}\nemoji: 🔥\ncolorFrom: gray\ncolorTo: gray\nsdk: {sdk}\npinned: false\n---\n"
            tree["README.md"] = File(readme.encode())
        repo.add("main", tree, "initial commit", author=author)
        return repo

    def page(self, kind: Kind, repo_id: str) -> str:
        return f"{self.endpoint}/{'' if kind == 'model' else f'{kind}s/'}{repo_id}"

    def validate_yaml(self, call: Call) -> Response:
        given = call.json()
        errors, warnings = cards.check(given["content"], given.get("repoType", "model"))
        found = {"errors": errors, "warnings": warnings}
        body = {key: [{"message": text} for text in texts] for key, texts in found.items()}
        return JSONResponse(body, status_code=400 if errors else 200)

    # -- reading -----------------------------------------------------------------------------------------------------

    def info(self, call: Call, repo: Repo, revision: str) -> Response:
        commit = repo.resolve(revision)
        expand = [name for key in ("expand", "expand[]") for name in call.query.get(key, [])]
        readme = commit.tree.get("README.md")
        card = card_data(readme) if readme else None
        siblings: list[dict[str, Any]] = []
        for path, file in sorted(commit.tree.items()):
            sibling: dict[str, Any] = {"rfilename": path}
            if call.flag("blobs"):
                sibling |= {"size": file.size, "blobId": file.oid}
                if file.lfs:
                    sibling["lfs"] = {"size": file.size, "sha256": file.sha256, "pointerSize": len(file.stored)}
            siblings.append(sibling)
        first = repo.commits("main")[-1]
        body: dict[str, Any] = {
            "_id": first.oid[:24], "id": repo.repo_id, "author": repo.repo_id.partition("/")[0], "sha": commit.oid,
            "lastModified": stamp(commit.date), "createdAt": stamp(first.date), "private": repo.private,
            "gated": False, "disabled": False, "likes": 0, "downloads": 0,
            "usedStorage": sum(len(content) for content in repo.objects.values()),
            "tags": [str(tag) for tag in (card or {}).get("tags") or []], "cardData": card, "siblings": siblings,
        }  # fmt: skip
        if repo.kind == "model":
            body["modelId"] = repo.repo_id
        if "evalResults" in expand:
            body["evalResults"] = [{"filename": name, "data": one} for _, name, one in eval_results(repo)]
        if repo.kind == "space":
            body |= {"sdk": (card or {}).get("sdk", repo.sdk), "runtime": {"stage": "RUNNING", "hardware": {}}}
        if expand:
            body = {key: value for key, value in body.items() if key in {"_id", "id", "modelId", *expand}}
        return JSONResponse(json.loads(json.dumps(body, default=str)))

    def refs(self, call: Call, repo: Repo) -> Response:
        def listed(refs: Mapping[str, str], prefix: str) -> list[dict[str, str]]:
            return [{"name": name, "ref": prefix + name, "targetCommit": oid} for name, oid in sorted(refs.items())]

        branches, tags = listed(repo.branches, "refs/heads/"), listed(repo.tags, "refs/tags/")
        return JSONResponse({"branches": branches, "tags": tags, "converts": []})

    def entry(self, repo: Repo, commit: Commit, path: str, expand: bool) -> dict[str, Any] | None:
        file = commit.tree.get(path)
        if file is not None:
            out: dict[str, Any] = {"type": "file", "oid": file.oid, "size": file.size, "path": path}
            if file.lfs:
                out["lfs"] = {"oid": file.sha256, "size": file.size, "pointerSize": len(file.stored)}
        elif path in commit.folders:
            out = {"type": "directory", "oid": commit.folders[path], "size": 0, "path": path}
        else:
            return None
        if expand:
            last = repo.last_commit(path, commit.oid)
            out["lastCommit"] = {"id": last.oid, "title": last.title, "date": stamp(last.date)}
            if file is not None:
                scan = {"status": "safe", "avScan": None, "pickleImportScan": None}
                out["securityFileStatus"] = scan
        return out

    def tree(self, call: Call, repo: Repo, revision: str, path: str) -> Response:
        commit = repo.resolve(revision)
        path = path.strip("/")
        if path not in commit.folders:
            raise entry_not_found(f"{path} does not exist on {revision}", commit)
        prefix = f"{path}/" if path else ""
        names = [name for name in (*commit.tree, *commit.folders) if name and name.startswith(prefix)]
        if not call.flag("recursive"):
            names = [name for name in names if "/" not in name[len(prefix) :]]
        entries = [self.entry(repo, commit, name, call.flag("expand")) for name in sorted(names)]
        return JSONResponse(entries)

    def paths_info(self, call: Call, repo: Repo, revision: str) -> Response:
        if call.headers.get("content-type", "").startswith("application/json"):
            given = {key: value if isinstance(value, list) else [value] for key, value in call.json().items()}
        else:
            given = parse_qs(call.body.decode(), keep_blank_values=True)
        if len(given.get("paths", [])) > 1000:
            raise HubError(413, "too many parameters")
        commit = repo.resolve(revision)
        expand = str(given.get("expand", [""])[0]).lower() == "true"
        found = [self.entry(repo, commit, path.strip("/"), expand) for path in given.get("paths", [])]
        return JSONResponse([entry for entry in found if entry is not None])

    def resolve(self, call: Call, kind: Kind, repo_id: str, revision: str, path: str) -> Response:
        repo = self.find(call, kind, repo_id)
        commit = repo.resolve(revision)
        file = commit.tree.get(path)
        if file is None:
            raise entry_not_found("Entry not found", commit)
        headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{file.oid}"'}
        if not file.lfs:
            return ranged(call, file.content, headers)
        headers |= {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(file.size)}
        place = f"{self.cdn}/lfs/{kind}s/{repo_id}/{file.sha256}?filename={quote(path.rpartition('/')[2], safe='')}"
        return RedirectResponse(place, 302, headers)

    # -- the storage of large files: another origin, as signed addresses are ------------------------------------------

    def storage(self, call: Call) -> Response:
        if "authorization" in call.headers:
            raise HubError(400, "Only one auth mechanism allowed: a signed address was called with a token")
        match call.method, call.parts:
            case "GET" | "HEAD", ["lfs", kinds, owner, name, sha256]:
                repo = self.repos[KINDS[kinds], f"{owner}/{name}"]
                return ranged(call, repo.objects[sha256], {"ETag": f'"{sha256}"'})
            case "PUT", ["upload", kinds, owner, name, sha256]:
                if hashlib.sha256(call.body).hexdigest() != sha256:
                    raise HubError(400, f"BadDigest: the content is not that of {sha256}")
                self.repos[KINDS[kinds], f"{owner}/{name}"].objects[sha256] = call.body
                return Response()
        raise NotKnown

    def lfs_batch(self, call: Call, kind: Kind, repo_id: str) -> Response:
        given = call.json()
        repo = self.find(call, kind, repo_id, write=True)
        objects: list[dict[str, Any]] = []
        for item in given["objects"]:
            entry: dict[str, Any] = {"oid": item["oid"], "size": item["size"]}
            if item["oid"] not in repo.objects:
                upload = {"href": f"{self.cdn}/upload/{kind}s/{repo_id}/{item['oid']}"}
                verify = {"href": f"{self.page(kind, repo_id)}.git/info/lfs/objects/verify"}
                entry["actions"] = {"upload": upload, "verify": verify}
            objects.append(entry)
        return JSONResponse({"transfer": "basic", "objects": objects})

    def lfs_verify(self, call: Call, kind: Kind, repo_id: str) -> Response:
        given = call.json()
        repo = self.find(call, kind, repo_id)
        if len(repo.objects.get(given["oid"], b"")) != given["size"]:
            raise HubError(404, f"the object {given['oid']} is not there, or not of this size")
        return JSONResponse({})

    # -- writing -----------------------------------------------------------------------------------------------------

    def preupload(self, call: Call, repo: Repo, revision: str) -> Response:
        self.known(call)
        commit = repo.resolve(revision)
        attributes = commit.tree.get(".gitattributes")
        answers = []
        for item in call.json()["files"]:
            sample = base64.b64decode(item["sample"])
            lfs = goes_by_lfs(item["path"], sample, item["size"], attributes.content if attributes else b"")
            answer = {"path": item["path"], "uploadMode": "lfs" if lfs else "regular", "shouldIgnore": False}
            there = commit.tree.get(item["path"])
            if there is not None:
                answer["oid"] = there.sha256 if there.lfs else there.oid
            answers.append(answer)
        return JSONResponse({"commitOid": commit.oid, "files": answers})

    def leaderboard(self, call: Call, dataset: Repo) -> Response:
        """Scores on a benchmark, best first: of models without a base model, or all. The token "valid" is a proof."""
        if "eval.yaml" not in dataset.resolve("main").tree:
            raise HubError(404, "This dataset has no leaderboard")
        found = []
        for (kind, model), repo in self.repos.items():
            readme = repo.resolve("main").tree.get("README.md")
            derived = readme is not None and "base_model" in (card_data(readme) or {})
            if kind != "model" or repo.private or (derived and call.query.get("base_model") != ["false"]):
                continue
            for number, name, one in eval_results(repo):
                if one["dataset"]["id"] == dataset.repo_id:
                    entry = {key: one.get(key) for key in ("value", "source", "notes")}
                    entry |= {"modelId": model, "filename": name, "author": {"type": "user", "name": "x"}}
                    entry |= {"verified": one.get("verifyToken") == "valid", "pullRequest": number}
                    found.append(entry)
        found.sort(key=lambda entry: -entry["value"] if isinstance(entry["value"], int | float) else 0)
        return JSONResponse([{"rank": rank, **entry} for rank, entry in enumerate(found, 1)])

    def merge(self, call: Call, repo: Repo, number: int) -> Response:
        commit = repo.resolve(f"refs/pr/{number}")
        if number not in repo.open_pulls() or commit.parent != repo.resolve("main").oid:
            raise HubError(409, "merged already, or main has moved, for which the loopback has no merge")
        repo.move("main", commit.oid)
        return JSONResponse({})

    def discussions(self, call: Call, repo: Repo) -> Response:
        """The pull requests."""
        found = [
            {
                "num": number, "title": title, "author": {"name": author}, "isPullRequest": True,
                "status": "open" if number in repo.open_pulls() else "merged",
                "createdAt": stamp(repo.resolve("main").date), "repo": {"name": repo.repo_id, "type": repo.kind},
            }
            for number, (title, author) in enumerate(repo.pulls, 1)
            if call.query.get("author", [author])[-1] == author
            and (number in repo.open_pulls() or call.query.get("status") != ["open"])
        ]  # fmt: skip
        return JSONResponse({"discussions": found, "count": len(found), "start": 0})

    def commit(self, call: Call, repo: Repo, revision: str) -> Response:
        user = self.known(call)
        operations = [json.loads(line) for line in call.body.splitlines() if line]
        header = next((item["value"] for item in operations if item["key"] == "header"), None)
        if header is None or not header.get("summary"):
            raise HubError(400, '"summary" is not allowed to be empty')
        if revision not in repo.branches:
            raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        parent, start = header.get("parentCommit"), repo.resolve(revision)
        if parent is not None and not start.oid.startswith(parent):
            raise HubError(412, "A commit has happened since. Please refresh and try again.")
        tree = dict(start.tree)
        for item in operations:
            if item["key"] != "header":
                self.apply(repo, tree, item["key"], item["value"])
        body: dict[str, Any] = {"success": True}
        if call.flag("create_pr"):  # a branch of its own, which anybody may open
            repo.pulls.append((header["summary"], user.name))
            revision = f"refs/pr/{len(repo.pulls)}"
            repo.move(revision, start.oid)
            page = f"{self.page(repo.kind, repo.repo_id)}/discussions/{len(repo.pulls)}"
            body["pullRequestUrl"] = page
        commit = repo.add(revision, tree, header["summary"], header.get("description", ""), user.name)
        page = f"{self.page(repo.kind, repo.repo_id)}/commit/{commit.oid}"
        return JSONResponse(body | {"commitOid": commit.oid, "commitUrl": page, "hookOutput": ""})

    def apply(self, repo: Repo, tree: dict[str, File], key: str, value: Mapping[str, Any]) -> None:
        """One line of a commit, put on the tree."""
        path = value["path"]
        if key in ("file", "lfsFile"):
            parts = path.split("/")
            if not path or any(part in ("", ".", "..", ".git") for part in parts):
                raise HubError(400, f"Invalid path: {path}")
            if path in (above for name in tree for above in parents(name)):
                raise HubError(400, f"{path} is a folder")
        if key == "file":
            text = value["content"]
            content = base64.b64decode(text) if value.get("encoding") == "base64" else text.encode()
            if len(content) > REGULAR_LIMIT:
                raise HubError(413, f"{path} is larger than 10 MiB: it must go by LFS")
            if path == "README.md":
                errors, _ = cards.check(content.decode(), repo.kind)
                if errors:
                    raise HubError(400, f"Invalid metadata in README.md: {errors[0]}")
            tree[path] = File(content)
        elif key == "lfsFile":
            if value["oid"] not in repo.objects:
                raise HubError(400, f"an LFS pointer pointed to a file that does not exist: {path}")
            tree[path] = File(repo.objects[value["oid"]], lfs=True)
            track(tree, path)
        elif key == "deletedFile":
            if path not in tree:
                raise HubError(404, f"A file with this name doesn't exist: {path}", "EntryNotFound")
            del tree[path]
        else:
            raise HubError(501, f"the loopback Hub does not know the operation {key}")

    def create_tag(self, call: Call, repo: Repo, revision: str) -> Response:
        tag = call.json()["tag"]
        commit = repo.resolve(revision)
        if tag in repo.tags:
            raise HubError(409, f"Tag reference exists already: refs/tags/{tag}")
        if not tag or re.search(r"[\x00-\x20~^:?*\[\\\x7f]|\.\.|@\{|//|^[/.-]|[/.]$|\.lock$", tag):
            raise HubError(400, f"Invalid reference name: {tag}")
        repo.tags[tag] = commit.oid
        return JSONResponse({})


def entry_not_found(message: str, commit: Commit) -> HubError:
    error = HubError(404, message, "EntryNotFound")
    error.commit = commit.oid
    return error


def track(tree: dict[str, File], path: str) -> None:
    """Add a line to .gitattributes, as the Hub does, for a file by LFS whose name it does not cover."""
    attributes = tree.get(".gitattributes", File(b"")).content
    if not tracked(path, attributes):
        line = f"{path.replace(' ', '[[:space:]]')} filter=lfs diff=lfs merge=lfs -text\n"
        tree[".gitattributes"] = File(attributes + line.encode())


def card_data(readme: File) -> dict[str, Any] | None:
    try:
        return cards.metadata(readme.content.decode("utf-8", "replace"))
    except ValueError:
        return None


def eval_results(repo: Repo) -> list[tuple[int | None, str, dict[str, Any]]]:
    """The entries of a model's .eval_results with their files, and those of open pull requests with their numbers."""
    found: list[tuple[int | None, str, dict[str, Any]]] = []
    for number in (None, *repo.open_pulls()):
        for name, content in sorted(repo.files(f"refs/pr/{number}" if number else "main").items()):
            if re.fullmatch(r"\.eval_results/[^/]+\.ya?ml", name):
                there = [one[1:] for one in found]
                found += [(number, name, one) for one in yaml.safe_load(content) if (name, one) not in there]
    return found


def stamp(date: datetime) -> str:
    return date.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def ranged(call: Call, content: bytes, headers: Mapping[str, str]) -> Response:
    """The content, or the part of it that was asked for."""
    headers = {**headers, "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
    status, asked = 200, re.fullmatch(r"bytes=(\d*)-(\d*)", call.headers.get("range", ""))
    if asked and (asked[1] or asked[2]):
        start = int(asked[1]) if asked[1] else max(len(content) - int(asked[2]), 0)
        end = min(int(asked[2]) + 1, len(content)) if asked[1] and asked[2] else len(content)
        if start >= len(content) or start >= end:
            headers["Content-Range"] = f"bytes */{len(content)}"
            return Response(status_code=416, headers=headers)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        status, content = 206, content[start:end]
    if call.method == "HEAD":
        return Response(status_code=status, headers={**headers, "Content-Length": str(len(content))})
    return Response(content, status, headers)
