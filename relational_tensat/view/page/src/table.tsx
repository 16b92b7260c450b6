/** Rows as a table; numbers stand at the right. */
import { count } from "./format";

type Cell = string | number | boolean | null;

export function Table({ columns, rows }: { columns: string[]; rows: Cell[][] }) {
  const isNumber = columns.map((_, n) => rows.some((row) => typeof row[n] === "number"));
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {columns.map((name, n) => (
              <th key={name} class={isNumber[n] ? "number" : ""}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place}>
              {row.map((cell, n) => (
                <td key={columns[n]} class={isNumber[n] ? "number" : ""}>
                  {text(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function text(cell: Cell): string {
  if (cell === null) return "NULL";
  if (typeof cell !== "number") return String(cell);
  return Number.isInteger(cell) ? count(cell) : String(Number(cell.toPrecision(6)));
}
