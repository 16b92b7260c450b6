/** Starts the page. */
import { render } from "preact";
import { App } from "./App";
import { readData } from "./data";
import "./style.css";

const root = document.getElementById("page");
if (root !== null) {
  const { data } = readData(document);
  root.replaceChildren();
  render(<App data={data} />, root);
  performance.mark("drawn");
}
