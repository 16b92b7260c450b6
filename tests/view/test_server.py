"""The served view: who has the token is answered, and nothing can be changed."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.cli.database import RunDatabase
from relational_tensat.cli.main import main
from relational_tensat.view import collect
from relational_tensat.view.server import HOST, Server
from tests.view.runs import stored_run


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    database = RunDatabase(stored_run("shared_matmuls"))
    with Server(database.connection) as started:
        thread = threading.Thread(target=started.serve_forever, args=(0.02,))
        thread.start()
        yield started
        started.shutdown()
        thread.join()
    database.close()


def get(server: Server, path: str, host: str = HOST) -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=30)
    connection.request("GET", path, headers={"Host": f"{host}:{server.server_port}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def ask(server: Server, name: str, question: str, known: int = 0) -> tuple[int, Any]:
    from urllib.parse import quote

    status, text = get(server, f"{server.prefix}/api/{name}?q={quote(question)}&known={known}")
    answer = json.loads(text)
    return status, answer if known or status != 200 else answer["answer"]


def test_only_who_has_the_token_and_names_this_machine_is_answered(server: Server) -> None:
    assert get(server, f"{server.prefix}/")[0] == 200
    for path in ("/", "/api/class?q=1", f"{server.prefix[:-1]}/", "/x/", "//"):
        assert get(server, path)[0] == 404
    assert get(server, f"{server.prefix}/", host="evil.example")[0] == 404
    assert len(server.prefix) > 30


def test_the_page_may_ask_its_server_and_nobody_else(server: Server) -> None:
    _, page = get(server, f"{server.prefix}/")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "connect-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert f'data-server="{server.prefix}"' in page


def test_classes_are_found_and_read(server: Server) -> None:
    _, hits = ask(server, "find", "concat")
    assert hits
    status, answer = ask(server, "classes", str(hits[0]["id"]))
    assert status == 200
    assert [found["id"] for found in answer] == [hits[0]["id"]]
    assert ask(server, "classes", "999999")[1] == []
    assert len(ask(server, "classes", "1,2,3")[1]) == 3
    assert ask(server, "classes", ",".join(["1"] * 999))[0] == 400
    assert ask(server, "classes", "x")[0] == 400
    assert ask(server, "nothing", "x")[0] == 400


def test_forms_that_the_page_has_are_not_sent(server: Server) -> None:
    number = str(ask(server, "find", "concat")[1][0]["id"])
    enodes = ask(server, "classes", number)[1][0]["enodes"]
    all_forms = ask(server, "classes", number, known=1)[1]["forms"]
    assert max(enode["form"] for enode in enodes) <= len(all_forms)
    assert ask(server, "classes", number, known=3)[1]["forms"] == all_forms[2:]


def test_the_film_is_that_of_the_page(server: Server) -> None:
    status, told = ask(server, "film", "")
    assert status == 200
    data = collect(server.view._stored.connection)
    assert data.film is not None
    assert [step["rule"] for step in told["film"]["steps"]] == [s.rule for s in data.film.steps]
    assert [rule["saved_us"] for rule in told["search"]["rules"]] == [
        rule.saved_us for rule in data.search.rules
    ]


def test_queries_are_answered_and_change_nothing(server: Server) -> None:
    status, answer = ask(server, "ask", "SELECT 1 AS one, [2, NULL] AS more")
    assert (status, answer) == (
        200,
        {"columns": ["one", "more"], "rows": [[1, [2, None]]], "is_cut": False},
    )
    assert ask(server, "ask", "SELECT range FROM range(9999)")[1]["is_cut"] is True
    for query in (
        "DELETE FROM enode", "ATTACH 'x.db'", "COPY enode TO '/tmp/x.csv'",
        "SELECT * FROM '/etc/passwd'", "SET enable_external_access = true", "SELECT", "", ";",
    ):  # fmt: skip
        status, answer = ask(server, "ask", query)
        assert status == 400, query
        assert "\n" not in answer["error"]


def test_a_query_that_takes_long_is_stopped_and_keeps_nobody_waiting(server: Server) -> None:
    endless = "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b"
    answers: list[tuple[int, Any]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(ask(server, "ask", endless)))
        for _ in range(2)
    ]
    for thread in threads:  # the second one stops the first
        thread.start()
    assert ask(server, "find", "concat")[0] == 200
    while len(answers) < 2:
        assert ask(server, "stop", "")[0] == 200
        threads[0].join(0.02)
    assert [status for status, _ in answers] == [400, 400]
    assert all("stopped" in answer["error"] for _, answer in answers)
    assert ask(server, "ask", "SELECT 1 AS one")[0] == 200


def test_a_server_ends_while_it_is_asked() -> None:
    endless = "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b"
    database = RunDatabase(stored_run("shared_matmuls"))
    with Server(database.connection) as started:
        serving = threading.Thread(target=started.serve_forever, args=(0.02,))
        serving.start()
        answers: list[tuple[int, Any]] = []
        asking = threading.Thread(target=lambda: answers.append(ask(started, "ask", endless)))
        asking.start()
        while not started.view._being_answered:
            asking.join(0.01)
        started.shutdown()
        serving.join()
    database.close()
    asking.join(10)
    assert answers[0][0] == 400


def test_why_a_rule_was_not_used(server: Server) -> None:
    status, answer = ask(server, "unused", "activation-into-product[tanh]")
    assert status == 200
    assert answer["conclusion"]
    status, answer = ask(server, "unused", "activation-into-produkt[tanh]")
    assert status == 400
    assert "did you mean" in answer["error"]


def test_a_port_that_is_taken_is_one_line(server: Server) -> None:
    with pytest.raises(UsageError, match=f"port {server.server_port}: cannot be listened on"):
        Server(server.view._stored.connection, server.server_port)


def test_serving_writes_no_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(stored_run("shared_matmuls")), "--serve", "-o", "x.html"]) == 2
    assert "--serve writes no page" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "2147483648", "٣" * 9, "-1", "1e9", ""])
def test_numbers_that_are_no_ids_are_answered(server: Server, number: str) -> None:
    assert ask(server, "classes", number)[0] in (200, 400)
    assert get(server, f"{server.prefix}/api/find?q=concat&known={'9' * 5000}")[0] == 200


@pytest.mark.parametrize(
    "query",
    ["SELECT repeat('x', 1500000000)", "SELECT range(100000000)", "SELECT repeat('x', 9000000)"],
)
def test_a_value_larger_than_a_page_ends_its_query_and_no_other_question(
    server: Server, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relational_tensat.view.server.LONGEST_QUERY_S", 1.5)
    answers: list[tuple[int, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(ask(server, "ask", query)))
    asking.start()
    while asking.is_alive():
        assert ask(server, "find", "concat")[0] == 200
        asking.join(0.05)
    ((status, answer),) = answers
    assert status == 400 and re.search("stopped|more than|memory", answer["error"])


def test_what_fails_inside_is_one_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: str) -> object:
        raise RecursionError("deep\nand deeper")

    monkeypatch.setitem(server.view._answers, "find", fails)  # type: ignore[arg-type]  # it is a dict
    status, answer = ask(server, "find", "x")
    assert (status, answer) == (500, {"error": "internal error: RecursionError: deep"})
