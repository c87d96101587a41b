  // Plays the recordings of the section in which this script stands; picture.js draws them. Nothing leaves the section.
  const root = document.currentScript.parentElement;
  const find = (selector) => root.querySelector(selector);
  const recordings = JSON.parse(find(".spota-data").textContent);
  let duration = Math.max(...recordings.map((r) => r.duration));
  const HOLD = 1.2; // seconds that the end stands still before the next round

  function drawFailure(ctx, width, height, recording) {
    const text = `failed at ${recording.duration.toFixed(2)} s`;
    ctx.font = "600 14px system-ui, sans-serif";
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    const w = ctx.measureText(text).width + 46, x = (width - w) / 2;
    const y = recording.scene === "rail" ? height - 34 : 8; // where the picture is empty
    ctx.beginPath();
    ctx.roundRect(x, y, w, 32, 16);
    ctx.fillStyle = colour.surface;
    ctx.fill();
    ctx.lineWidth = 2;
    ctx.strokeStyle = colour.failure;
    ctx.stroke();
    stroke(ctx, [{ x: x + 14, y: y + 11 }, { x: x + 24, y: y + 21 }], colour.failure, 2.5);
    stroke(ctx, [{ x: x + 24, y: y + 11 }, { x: x + 14, y: y + 21 }], colour.failure, 2.5);
    ctx.fillStyle = colour.failure;
    ctx.fillText(text, x + 32, y + 17);
  }

  function drawStrip(ctx, width, height, recording, now) {
    const left = 16, wide = width - 32, mid = height / 2, amplitude = height / 2 - 6;
    const x = (t) => left + (wide * t) / duration;
    stroke(ctx, [{ x: left, y: mid }, { x: left + wide, y: mid }], colour.grid, 1);
    recording.commands.forEach((values, c) => {
      const { low, high } = recording.signals[c], y = (v) => mid - amplitude * ((2 * (v - low)) / (high - low) - 1);
      const points = values.map((v, i) => ({ x: x(Math.min(i * recording.interval, recording.duration)), y: y(v) }));
      ctx.globalAlpha = 0.28;
      stroke(ctx, points.slice(now.i), colour[c % 2 ? "second" : "first"], 1.2);
      ctx.globalAlpha = 1;
      const here = { x: x(now.time), y: y(at(values, now)) };
      stroke(ctx, [...points.slice(0, now.i + 1), here], colour[c % 2 ? "second" : "first"], 1.6);
      disc(ctx, here, 3.2, colour[c % 2 ? "second" : "first"]);
    });
    stroke(ctx, [{ x: x(now.time), y: 2 }, { x: x(now.time), y: height - 2 }], colour.quiet, 1);
    if (recording.failed) {
      const end = x(recording.duration);
      stroke(ctx, [{ x: end - 4, y: mid - 4 }, { x: end + 4, y: mid + 4 }], colour.failure, 2);
      stroke(ctx, [{ x: end - 4, y: mid + 4 }, { x: end + 4, y: mid - 4 }], colour.failure, 2);
    }
  }

  /** A canvas in CSS pixels, sharp on any screen. */
  function paint(canvas, picture) {
    const { clientWidth: width, clientHeight: height } = canvas, ratio = window.devicePixelRatio || 1;
    if (!width || !height) return;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const ctx = canvas.getContext("2d");
    ctx.setTransform(w / width, 0, 0, h / height, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.lineCap = ctx.lineJoin = "round";
    picture(ctx, width, height);
  }

  const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(1);
  const withUnit = (text, unit) => (unit === "-" ? text : `${text} ${unit}`);
  const figures = [...root.querySelectorAll(".spota-figure")].map((figure, i) => {
    const [scene, strip] = figure.querySelectorAll("canvas"), recording = recordings[i];
    const [time, earned, ...volts] = figure.querySelectorAll("dd");
    if (volts.length > 1) {
      volts.forEach((dd, c) => dd.previousElementSibling.insertAdjacentHTML("afterbegin", `<i style="background:var(--${c % 2 ? "second" : "first"})"></i>`));
    }
    return (t) => {
      const now = moment(recording, t);
      paint(scene, (ctx, w, h) => {
        drawPicture(ctx, w, h, recording, now);
        if (recording.failed && now.over) drawFailure(ctx, w, h, recording);
      });
      paint(strip, (ctx, w, h) => drawStrip(ctx, w, h, recording, now));
      time.textContent = `${now.time.toFixed(2)} s`;
      earned.textContent = at(recording.returns, now).toFixed(0).replace("-", "−");
      volts.forEach((dd, c) => { dd.textContent = withUnit(signed(at(recording.commands[c], now)), recording.signals[c].unit); });
    };
  });

  // ---- the player ------------------------------------------------------------------------------------------------

  const [button, scrub, clock, speed] = ["play", "scrub", "clock", "speed"].map((name) => find(".spota-" + name));
  let time = 0, playing = false, before = null, visible = true;

  function draw() {
    const shown = Math.min(time, duration);
    figures.forEach((figure) => figure(shown));
    scrub.value = shown;
    scrub.setAttribute("aria-valuetext", `${shown.toFixed(2)} seconds`);
    clock.textContent = `${shown.toFixed(2)} s`;
  }
  function tick(stamp) {
    if (!playing || !visible) { before = null; return; }
    if (before !== null) time += (Math.min(stamp - before, 100) / 1000) * Number(speed.value);
    before = stamp;
    if (time > duration + HOLD * Number(speed.value)) time = 0;
    draw();
    requestAnimationFrame(tick);
  }
  function play(on) {
    playing = on;
    button.setAttribute("aria-label", on ? "pause" : "play");
    button.querySelector("path").setAttribute("d", on ? "M6 5h4v14H6zM14 5h4v14h-4z" : "M8 5v14l11-7z");
    if (on) { before = null; requestAnimationFrame(tick); }
  }
  function refresh() {
    readColours();
    draw();
  }

  button.addEventListener("click", () => {
    if (!playing && time >= duration) time = 0;
    play(!playing);
  });
  scrub.max = duration;
  scrub.addEventListener("input", () => {
    play(false);
    time = Number(scrub.value);
    draw();
  });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", refresh);
  new ResizeObserver(draw).observe(root);
  new IntersectionObserver(([entry]) => {
    const was = visible;
    visible = entry.isIntersecting;
    if (playing && visible && !was) requestAnimationFrame(tick);
  }).observe(root);

  /** Live: a machine that runs now shows its last moments, again and again. */
  root.addEventListener("spota-live", ({ detail }) => {
    Object.assign(recordings[0], detail);
    duration = detail.duration;
    play(false);
    time = duration - 1e-6; // not yet over
    draw();
  });

  find(".spota-controls").hidden = false;
  refresh();
  play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
