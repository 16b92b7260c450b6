"""The e-graph is tables: explore a model, and ask them.

python examples/query_the_egraph.py
"""

from pathlib import Path

from relational_tensat import EGraph

MODELS = Path(__file__).resolve().parent.parent / "bench" / "inputs"

with EGraph.of(MODELS / "gated_mlp.onnx") as egraph:
    egraph.explore(iterations=3)
    print(egraph)

    # Which rules added the most e-nodes? A notebook shows the rows as a table.
    rows = egraph.sql(
        "SELECT rule, count(*) AS e_nodes FROM enode_text GROUP BY rule ORDER BY e_nodes DESC LIMIT 5"
    )
    print(rows)

    # How many ways are there to compute a value with a product? $op is a parameter.
    query = """
        SELECT class, count(*) AS ways FROM enode_text
        WHERE class IN (SELECT class FROM enode_text WHERE op = $op)
        GROUP BY class ORDER BY ways DESC, class
    """
    for number, ways in egraph.sql(query, op="matmul"):
        print(f"class {number}: {ways} ways")

    # arrow() gives a table of Arrow; df() and pl() give one of pandas and polars.
    print(rows.arrow().schema)
