// Unpacks plotly, which stands in this page as compressed text, and draws every plot in the colours of the theme.
(async () => {
  "use strict";
  const plots = [...document.querySelectorAll(".plot")];
  const specs = plots.map((plot) => JSON.parse(plot.parentElement.querySelector("script").textContent));
  const COLOURS = ["ink", "quiet", "grid", "edge", "surface", "blue", "orange", "green", "purple", "grey"];
  const TOKEN = new RegExp(`^@(${COLOURS.join("|")})(?:/([\\d.]+))?$`);

  /** "@blue" → the theme's blue; "@blue/0.5" → the same, half transparent. */
  function paint(token, style) {
    const [, name, alpha] = token.match(TOKEN);
    const hex = style.getPropertyValue("--" + name).trim();
    const channels = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    return `rgba(${channels.join()},${alpha ?? 1})`;
  }
  function themed(value, style) {
    if (typeof value === "string") return TOKEN.test(value) ? paint(value, style) : value;
    if (Array.isArray(value)) return value.map((v) => themed(v, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, themed(v, style)]));
  }

  const coarse = matchMedia("(pointer: coarse)").matches;
  function axis(own = {}) {
    const title = own.title ? { text: own.title, standoff: 8, font: { color: "@quiet", size: 13 } } : undefined;
    const look = { gridcolor: "@grid", zerolinecolor: "@edge", linecolor: "@edge", automargin: true, exponentformat: "e" };
    return { ...look, fixedrange: coarse, ...own, title }; // a finger that scrolls must not zoom
  }
  function layout(own) {
    return {
      autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
      font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", size: 13, color: "@ink" },
      hoverlabel: { bgcolor: "@surface", bordercolor: "@edge", font: { color: "@ink" } },
      ...own,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", ...own.legend },
      margin: { l: 8, r: 12, t: 12, b: 8, ...own.margin },
      xaxis: axis(own.xaxis), yaxis: axis(own.yaxis),
    };
  }
  const CONFIG = { responsive: true, displayModeBar: false, scrollZoom: false, doubleClick: "reset" };
  function draw() {
    const style = getComputedStyle(document.documentElement);
    return Promise.all(plots.map((plot, i) =>
      window.Plotly.react(plot, themed(specs[i].data, style), themed(layout(specs[i].layout), style), CONFIG)));
  }

  async function unpack(element) {
    const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  if (plots.length && !("DecompressionStream" in window)) {
    for (const plot of plots) plot.innerHTML = '<p class="late">This plot needs a browser of 2023 or later.</p>';
    return;
  }
  if (plots.length) {
    await unpack(document.getElementById("plotly"));
    await draw();
    const again = () => { draw(); plots.forEach((plot) => window.Plotly.Plots.resize(plot)); };
    for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", again);
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  document.documentElement.dataset.ready = "yes";
})();
