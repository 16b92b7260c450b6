/** Starts the page. */
import { render } from "preact";
import { App } from "./App";
import { readData } from "./data";
import { carried, served } from "./source";
import "./style.css";

const root = document.getElementById("page");
if (root !== null) {
  const { data, server } = readData(document);
  const source = server === "" ? carried(data) : served(data, server);
  root.replaceChildren();
  render(<App data={data} source={source} />, root);
  performance.mark("drawn");
}
