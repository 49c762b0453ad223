"""A small web service in front of a workflow: python client_service.py WORKFLOW.py [PORT]

POST /runs              start a run: the body is its input, the header Idempotency-Key its key
GET  /runs/ID           where it is, and what it has made
POST /runs/ID/approve   approve what it asks for
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from smithers.client import Client, DatabaseUnavailable, Refused, Run, SmithersError, UnknownRun

STATUSES: list[tuple[type[SmithersError], int]] = [
    (UnknownRun, 404), (Refused, 409), (DatabaseUnavailable, 503), (SmithersError, 400)
]  # fmt: skip


class Service(ThreadingHTTPServer):
    """One client for all the threads that answer requests."""

    def __init__(self, port: int, client: Client, workflow: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.client, self.workflow = client, workflow


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    def do_GET(self) -> None:
        self.reply()

    def do_POST(self) -> None:
        self.reply()

    def reply(self) -> None:
        try:
            status, body = self.route()
        except SmithersError as error:
            status = next(number for kind, number in STATUSES if isinstance(error, kind))
            body = error.to_json()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode() + b"\n")

    def route(self) -> tuple[int, dict[str, object]]:
        assert isinstance(self.server, Service)
        match self.command, self.path.strip("/").split("/"):
            case "POST", ["runs"]:
                return self.start(self.server.client, self.server.workflow)
            case "GET", ["runs", run_id]:
                return 200, show(self.server.client.run(run_id))
            case "POST", ["runs", run_id, "approve"]:
                receipt = self.server.client.run(run_id).approve(by=self.headers.get("From"))
                return 200, {"id": run_id, "status": receipt.status}
            case _:
                return 404, {"message": "there is no such page"}

    def start(self, client: Client, workflow: str) -> tuple[int, dict[str, object]]:
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            document = json.loads(text or "{}")
        except ValueError:
            return 400, {"message": "the body isn't JSON"}
        run = client.start(workflow, document, idempotency_key=self.headers["Idempotency-Key"])
        return 201 if run.created else 200, {"id": run.id}


def show(run: Run) -> dict[str, object]:
    seen, outputs = run.status(), run.outputs()
    waits = [wait.message for wait in seen.blocked]
    made = {output.node_id: output.value for output in outputs}
    return {"id": run.id, "status": seen.status, "waits_for": waits, "outputs": made}


if __name__ == "__main__":
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
    with Client() as client, Service(port, client, sys.argv[1]) as service:
        print(f"http://127.0.0.1:{service.server_port}", flush=True)
        service.serve_forever()
