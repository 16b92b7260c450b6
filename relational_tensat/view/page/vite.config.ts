/** Builds one script and one style sheet, which `relational_tensat/view/document.py` puts into every page. */
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../bundle",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    lib: {
      entry: "src/main.tsx",
      formats: ["iife"],
      name: "page",
      fileName: () => "page.js",
      cssFileName: "page",
    },
  },
  define: { "process.env.NODE_ENV": '"production"' },
});
