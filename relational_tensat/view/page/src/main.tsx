/** Starts the page. */
import { render } from "preact";
import { App } from "./App";
import { readData } from "./data";
import { KernelsAlone } from "./kernels/KernelsAlone";
import { carried, served } from "./source";
import "./style.css";

const root = document.getElementById("page");
if (root !== null) {
  const { data, server } = readData(document);
  root.replaceChildren();
  if ("drawings" in data) {
    render(<KernelsAlone page={data} />, root);
  } else {
    const source = server === "" ? carried(data) : served(data, server);
    render(<App data={data} source={source} />, root);
  }
  document.addEventListener("click", followWithin);
  performance.mark("drawn");
}

/** Follow a link within the page by its name alone: in a notebook's frame, the page has no address. */
function followWithin(event: MouseEvent): void {
  const name = (event.target as Element).closest("a")?.getAttribute("href") ?? "";
  if (!name.startsWith("#") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  location.hash = name;
}
