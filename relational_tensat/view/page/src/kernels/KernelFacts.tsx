/** A kernel in figures: its grid and loop, and for each tensor its maps and the bytes that move. */
import type { MuDrawing, MuKernel, MuTransfer } from "../data";
import { bytes } from "../format";
import { Table } from "../table";
import { gridText } from "./arranged";

export function KernelFacts({ drawing }: { drawing: MuDrawing }) {
  return (
    <>
      {drawing.kernels.map((kernel) => (
        <section key={kernel.name}>
          <h3>
            kernel {kernel.name}: {gridText(kernel.grid)}
            {kernel.loop > 1 ? `, loop of ${kernel.loop}` : ""}
            {kernel.shared_bytes === null
              ? ""
              : `, ${bytes(kernel.shared_bytes)} of shared memory a block`}
          </h3>
          <Table
            columns={["tensor", "moves", "maps", "tile", "tensor's size", "blocks move"]}
            rows={kernel.transfers.map((transfer) => [
              transfer.tensor,
              transfer.is_load ? "↓ load" : "↑ store",
              transfer.maps,
              transfer.tile,
              bytes(transfer.tensor_bytes),
              bytes(transfer.moved_bytes),
            ])}
          />
        </section>
      ))}
      <p class="hint">
        Elements are {drawing.element}. A tensor moves at least once; where several blocks or
        iterations need the same part of it, the second-level cache may serve them.
      </p>
    </>
  );
}

/** Bytes that a kernel reads and writes if each tensor moves once. */
export function leastBytes(kernels: MuKernel[]): number {
  const all: MuTransfer[] = kernels.flatMap((kernel) => kernel.transfers);
  return all.reduce((sum, transfer) => sum + transfer.tensor_bytes, 0);
}
