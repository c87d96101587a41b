// Plays the recordings of the section in which this script stands. Nothing leaves the section.
(() => {
  "use strict";
  const root = document.currentScript.parentElement;
  const find = (selector) => root.querySelector(selector);
  const recordings = JSON.parse(find(".spota-data").textContent);
  let duration = Math.max(...recordings.map((r) => r.duration));
  const HOLD = 1.2; // seconds that the end stands still before the next round
  const TRAIL = 1.4; // seconds of the past that stay visible

  // ---- numbers -------------------------------------------------------------------------------------------------

  const mix = (a, b, w) => a + (b - a) * w;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const times = (M, p) => M.map((row) => dot(row, p));
  const product = (A, B) => A.map((row) => [0, 1, 2].map((j) => row[0] * B[0][j] + row[1] * B[1][j] + row[2] * B[2][j]));
  const circle = (n, point) => Array.from({ length: n + 1 }, (_, i) => point((2 * Math.PI * i) / n));

  /** Turn by `angle` about the unit vector (x, y, 0). */
  function turn(x, y, angle) {
    const c = Math.cos(angle), s = Math.sin(angle), d = 1 - c;
    return [[c + x * x * d, x * y * d, y * s], [x * y * d, c + y * y * d, -x * s], [-y * s, x * s, c]];
  }

  /** Where in its frames a recording is at a time: the frame before, and the way to the next one. */
  function moment(recording, time) {
    const last = recording.returns.length - 1, t = Math.min(time, recording.duration);
    const i = clamp(Math.floor(t / recording.interval), 0, last - 1);
    const begin = i * recording.interval, end = i + 1 === last ? recording.duration : begin + recording.interval;
    return { i, w: clamp((t - begin) / (end - begin), 0, 1), time: t, over: time >= recording.duration };
  }
  const at = (values, { i, w }) => mix(values[i], values[i + 1], w);
  /** Between frames on a smooth curve (Catmull-Rom), for what moves; straight at the ends. */
  function along(values, { i, w }) {
    if (i < 1 || i > values.length - 4) return mix(values[i], values[i + 1], w);
    const [a, b, c, d] = values.slice(i - 1, i + 3);
    return b + (w / 2) * (c - a + w * (2 * a - 5 * b + 4 * c - d + w * (3 * (b - c) + d - a)));
  }
  const largest = (scene, size) => Math.max(...recordings.filter((r) => r.scene === scene).map((r) => r.sizes[size]));

  // ---- colours -------------------------------------------------------------------------------------------------

  let colour = {};
  const NAMES = ["surface", "edge", "ink", "quiet", "grid", "floor", "metal", "metal-dark", "metal-light", "board",
    "board-shade", "target", "first", "second", "moving", "moving-light", "moving-dark", "failure", "shadow"];
  function readColours() {
    const style = getComputedStyle(root);
    colour = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
  }
  const shade = (alpha) => `rgba(${colour.shadow}, ${alpha})`;
  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  function blend(a, b, w) {
    const to = channels(b);
    return `rgb(${channels(a).map((v, i) => Math.round(mix(v, to[i], clamp(w, 0, 1)))).join()})`;
  }
  const commandColour = (i) => [colour.first, colour.second][i % 2];

  // ---- brushes -------------------------------------------------------------------------------------------------

  function trace(ctx, points) {
    ctx.beginPath();
    points.forEach((p, i) => (i ? ctx.lineTo(p.x, p.y) : ctx.moveTo(p.x, p.y)));
  }
  function fill(ctx, points, style) {
    trace(ctx, points);
    ctx.closePath();
    ctx.fillStyle = style;
    ctx.fill();
  }
  function stroke(ctx, points, style, width) {
    trace(ctx, points);
    ctx.lineWidth = width;
    ctx.strokeStyle = style;
    ctx.stroke();
  }
  function disc(ctx, p, radius, style) {
    ctx.beginPath();
    ctx.arc(p.x, p.y, Math.max(radius, 0.1), 0, 2 * Math.PI);
    ctx.fillStyle = style;
    ctx.fill();
  }
  /** A round rod with a light side. */
  function rod(ctx, a, b, width, dark, light) {
    stroke(ctx, [a, b], dark, width);
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1, s = -0.18 * width / length;
    const n = { x: -(b.y - a.y) * s, y: (b.x - a.x) * s }, up = n.y > 0 ? -1 : 1;
    const side = (p) => ({ x: p.x + up * n.x, y: p.y + up * n.y });
    stroke(ctx, [side(a), side(b)], light, width * 0.35);
  }
  /** A soft round shadow on a level ground. */
  function ground(ctx, view, centre, radius, alpha) {
    const p = view.project(centre), flat = p.k;
    ctx.save();
    ctx.translate(p.x, p.y);
    ctx.scale(1, Math.sin(view.elevation));
    const soft = ctx.createRadialGradient(0, 0, 0, 0, 0, radius * flat);
    soft.addColorStop(0, shade(alpha));
    soft.addColorStop(0.55, shade(alpha * 0.6));
    soft.addColorStop(1, shade(0));
    disc(ctx, { x: 0, y: 0 }, radius * flat, soft);
    ctx.restore();
  }
  /** The last moments of a point, fading; `place` says where it is at a moment. */
  function trail(ctx, recording, now, style, width, place) {
    const dt = recording.interval / 4, n = Math.floor(Math.min(TRAIL, now.time) / dt), piece = 10;
    const points = Array.from({ length: n + 1 }, (_, j) => place(j ? moment(recording, now.time - j * dt) : now));
    ctx.lineCap = "butt";
    for (let j = 0; j < n; j += piece) {
      const age = (j * dt) / TRAIL;
      ctx.globalAlpha = 0.75 * (1 - age) ** 1.2;
      stroke(ctx, points.slice(j, j + piece + 1), style, width * (1 - 0.6 * age));
    }
    ctx.lineCap = "round";
    ctx.globalAlpha = 1;
  }

  /** Perspective: x to the right, y away, z up, after turning by azimuth and looking down by elevation. */
  function camera(width, height, { azimuth, elevation, scale, distance, centre }) {
    const [ca, sa, ce, se] = [Math.cos(azimuth), Math.sin(azimuth), Math.cos(elevation), Math.sin(elevation)];
    const right = [ca, sa, 0], up = [-sa * se, ca * se, ce], away = [-sa * ce, ca * ce, -se];
    function project(p) {
      const q = [p[0] - centre[0], p[1] - centre[1], p[2] - centre[2]];
      const k = (scale * distance) / (distance + dot(q, away));
      return { x: width / 2 + k * dot(q, right), y: height / 2 - k * dot(q, up), k, depth: dot(q, away) };
    }
    return { project, right, up, away, elevation };
  }

  // ---- the plate and its ball ------------------------------------------------------------------------------------

  const SEAMS = [
    circle(48, (a) => [Math.cos(a), Math.sin(a), 0]),
    circle(48, (a) => [Math.cos(a), 0, Math.sin(a)]),
    ...[-0.62, 0.62].map((y) => circle(40, (a) => [0.785 * Math.cos(a), y, 0.785 * Math.sin(a)])),
  ];

  /** Roll the ball once through the recording: its orientation at each frame. */
  function roll(recording) {
    const { x, y } = recording.tracks, turns = [turn(0.6, 0.8, 0.7)];
    for (let i = 1; i < x.length; i++) turns.push(rolled(recording, turns[i - 1], x[i] - x[i - 1], y[i] - y[i - 1]));
    return turns;
  }
  function rolled(recording, orientation, dx, dy) {
    const way = Math.hypot(dx, dy);
    return way ? product(turn(-dy / way, dx / way, way / recording.sizes.ball), orientation) : orientation;
  }

  function drawBall(ctx, view, centre, radius, orientation) {
    const p = view.project(centre), r = radius * p.k;
    const skin = ctx.createRadialGradient(p.x - 0.38 * r, p.y - 0.45 * r, 0.05 * r, p.x, p.y, 1.05 * r);
    skin.addColorStop(0, colour["moving-light"]);
    skin.addColorStop(0.45, colour.moving);
    skin.addColorStop(1, colour["moving-dark"]);
    disc(ctx, p, r, skin);
    ctx.globalAlpha = 0.55;
    for (const seam of SEAMS) {
      const points = seam.map((s) => times(orientation, s));
      for (let j = 1; j < points.length; j++) {
        if (dot(points[j], view.away) > 0 || dot(points[j - 1], view.away) > 0) continue;
        const ends = [points[j - 1], points[j]];
        stroke(ctx, ends.map((s) => ({ x: p.x + r * dot(s, view.right), y: p.y - r * dot(s, view.up) })),
          colour["moving-dark"], Math.max(1, 0.09 * r));
      }
    }
    ctx.globalAlpha = 1;
  }

  /** A servo under an edge: hub, arm, and the rod up to the plate. `out` points from the centre to that edge. */
  function drawServo(ctx, view, out, edge, arm, angle, [level, floor], top, style) {
    const place = (radial, z) => [out[0] * radial, out[1] * radial, z];
    const hub = place(edge - arm, level), tip = place(edge - arm + arm * Math.cos(angle), level - arm * Math.sin(angle));
    const [foot, h, t, e] = [place(edge - arm, floor), hub, tip, top].map(view.project), w = 0.011 * h.k;
    rod(ctx, foot, h, 2.6 * w, colour["metal-dark"], colour.metal);
    rod(ctx, t, e, 0.55 * w, colour["metal-dark"], colour["metal-light"]);
    stroke(ctx, [h, t], style, w);
    disc(ctx, h, 0.95 * w, style);
    disc(ctx, h, 0.4 * w, colour.surface);
    disc(ctx, t, 0.45 * w, colour["metal-light"]);
  }

  function drawPlate(ctx, width, height, recording, now) {
    const { tracks, sizes } = recording, big = largest("plate", "plate"), half = sizes.plate / 2;
    const drop = 0.2 * big, floor = -0.31 * big, thick = 0.022 * big;
    const view = camera(width, height, { azimuth: 0.6, elevation: 0.56, distance: 3.4 * big, centre: [0, 0, -0.11 * big],
      scale: Math.min(width / (1.58 * big), height / (1.24 * big)) });
    const tiltX = along(tracks.tilt_x, now), tiltY = along(tracks.tilt_y, now);
    const tilt = product(turn(0, 1, tiltX), turn(1, 0, -tiltY)), on = (x, y, z = 0) => times(tilt, [x, y, z]);
    const board = (x, y, z) => view.project(on(x, y, z));

    ground(ctx, view, [0, 0, floor - thick], 0.74 * big, 0.42);
    const base = (z) => circle(72, (a) => view.project([0.57 * big * Math.cos(a), 0.57 * big * Math.sin(a), z]));
    fill(ctx, base(floor - thick), colour["metal-dark"]);
    fill(ctx, base(floor), colour.floor);
    stroke(ctx, base(floor), colour.metal, 1);
    ground(ctx, view, [0, 0, floor], 0.56 * big, 0.25);
    rod(ctx, view.project([0, 0, floor]), view.project([0, 0, -thick]), 0.02 * view.project([0, 0, -drop]).k,
      colour["metal-dark"], colour["metal-light"]);
    drawServo(ctx, view, [1, 0], half * 0.94, sizes.arm, along(tracks.servo_x, now), [-drop, floor], on(half * 0.94, 0, -thick), colour.first);
    drawServo(ctx, view, [0, -1], half * 0.94, sizes.arm, -along(tracks.servo_y, now), [-drop, floor], on(0, -half * 0.94, -thick), colour.second);

    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => [x * half, y * half]);
    corners.forEach(([x, y], i) => {
      const [u, v] = corners[(i + 1) % 4];
      fill(ctx, [board(x, y), board(u, v), board(u, v, -thick), board(x, y, -thick)], i ? colour.metal : colour["metal-dark"]);
    });
    const light = times(tilt, [0, 0, 1]), glow = 0.5 + 5 * (light[0] * 0.5 - light[1] * 0.3);
    const [far, near] = [board(-half, half), board(half, -half)], face = ctx.createLinearGradient(far.x, far.y, near.x, near.y);
    face.addColorStop(0, blend(colour.board, colour["board-shade"], 0.42 - 0.5 * (glow - 0.5)));
    face.addColorStop(1, blend(colour.board, colour["board-shade"], 0.08 - 0.5 * (glow - 0.5)));
    fill(ctx, corners.map(([x, y]) => board(x, y)), face);
    ctx.globalAlpha = 0.6;
    for (let i = -3; i <= 3; i++) {
      stroke(ctx, [board((i * half) / 4, -half), board((i * half) / 4, half)], colour.grid, i ? 1 : 1.6);
      stroke(ctx, [board(-half, (i * half) / 4), board(half, (i * half) / 4)], colour.grid, i ? 1 : 1.6);
    }
    ctx.globalAlpha = 1;
    stroke(ctx, [...corners, corners[0]].map(([x, y]) => board(x, y)), colour["metal-light"], 1.2);
    for (const r of [0.035, 0.085]) {
      stroke(ctx, circle(48, (a) => board(r * big * Math.cos(a), r * big * Math.sin(a))), colour.target, 1.8);
    }
    axisName(ctx, board(half * 0.88, half * 0.07), "x", colour.first);
    axisName(ctx, board(half * 0.07, -half * 0.88), "y", colour.second);

    const place = (m) => board(along(tracks.x, m), along(tracks.y, m));
    trail(ctx, recording, now, colour.moving, 0.012 * big * place(now).k, place);
    const x = along(tracks.x, now), y = along(tracks.y, now), r = sizes.ball;
    for (const [grow, alpha] of [[1.15, 0.12], [0.9, 0.2], [0.6, 0.25]]) {
      const spot = circle(32, (a) => [x - 0.35 * r + grow * r * Math.cos(a), y - 0.2 * r + grow * r * Math.sin(a)]);
      fill(ctx, spot.map(([u, v]) => board(clamp(u, -half, half), clamp(v, -half, half))), shade(alpha));
    }
    recording.turns ??= roll(recording);
    const { x: xs, y: ys } = tracks, spin = rolled(recording, recording.turns[now.i],
      (xs[now.i + 1] - xs[now.i]) * now.w, (ys[now.i + 1] - ys[now.i]) * now.w);
    drawBall(ctx, view, on(x, y, r), r, product(tilt, spin));
  }

  function axisName(ctx, p, name, style) {
    ctx.font = `600 ${Math.max(11, 0.026 * p.k * 0.6)}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillStyle = style;
    ctx.fillText(name, p.x, p.y);
  }

  // ---- the cart on its rail --------------------------------------------------------------------------------------

  /** How far the poles hang down in any recording: 1 at the bottom, −1 upright. */
  const deepest = () => Math.max(...recordings.filter((r) => r.scene === "rail").flatMap((r) => r.tracks.alpha.map(Math.cos)));

  function drawRail(ctx, width, height, recording, now) {
    const { tracks, sizes } = recording, long = largest("rail", "rail"), tall = largest("rail", "pole");
    const top = tall + 0.03, bottom = -Math.max(0.105, tall * deepest() + 0.03);
    const k = Math.min((0.92 * width) / long, (0.94 * height) / (top - bottom));
    const spot = (x, z) => ({ x: width / 2 + k * x, y: height / 2 - k * (z - (top + bottom) / 2) });
    const half = sizes.rail / 2, cart = { w: 0.11, h: 0.044 }, thin = Math.max(1, k * 0.0022);
    const x = along(tracks.x, now);
    const tip = (m) => {
      const a = along(tracks.alpha, m);
      return spot(along(tracks.x, m) + sizes.pole * Math.sin(a), -sizes.pole * Math.cos(a));
    };

    const floor = -0.075;
    const soft = ctx.createLinearGradient(0, spot(0, floor).y, 0, spot(0, floor - 0.03).y);
    soft.addColorStop(0, shade(0.13));
    soft.addColorStop(1, shade(0));
    fill(ctx, [spot(-half, floor), spot(half, floor), spot(half * 1.02, floor - 0.03), spot(-half * 1.02, floor - 0.03)], soft);
    for (let mark = -Math.floor(half / 0.05); mark <= half / 0.05; mark++) {
      const major = mark % 2 === 0;
      stroke(ctx, [spot(mark * 0.05, -0.043), spot(mark * 0.05, major ? -0.062 : -0.054)], colour.grid, major ? 1.5 : 1);
    }
    for (const side of [-1, 1]) {
      fill(ctx, [spot(side * half, -0.03), spot(side * (half - 0.05), -0.03), spot(side * (half - 0.05), -0.043),
        spot(side * half, -0.043)], colour.failure);
    }
    rod(ctx, spot(-half, -0.034), spot(half, -0.034), k * 0.014, colour["metal-dark"], colour["metal-light"]);
    for (const side of [-1, 1]) {
      const [a, b] = [spot(side * half, 0.012), spot(side * half, -0.075)];
      stroke(ctx, [a, b], colour["metal-dark"], k * 0.02);
      stroke(ctx, [spot(side * (half - 0.05), -0.018), spot(side * (half - 0.05), -0.05)], colour.failure, Math.max(2, thin));
    }
    ctx.setLineDash([5, 6]);
    stroke(ctx, [spot(0, -0.02), spot(0, tall * 1.12)], colour.grid, 1.4);
    ctx.setLineDash([]);
    stroke(ctx, circle(32, (a) => spot(0.012 * Math.cos(a), sizes.pole + 0.012 * Math.sin(a))),
      colour.target, 1.8);

    trail(ctx, recording, now, colour.moving, Math.max(2, k * 0.008), tip);
    const wheel = 0.011;
    for (const side of [-1, 1]) {
      const hub = spot(x + side * cart.w * 0.3, -0.018), turn_ = -x / wheel;
      disc(ctx, hub, k * wheel, colour["metal-dark"]);
      disc(ctx, hub, k * wheel * 0.55, colour["metal-light"]);
      stroke(ctx, [hub, { x: hub.x + k * wheel * 0.8 * Math.cos(turn_), y: hub.y + k * wheel * 0.8 * Math.sin(turn_) }],
        colour["metal-dark"], thin * 1.2);
    }
    const corner = spot(x - cart.w / 2, cart.h * 0.62), body = ctx.createLinearGradient(0, corner.y, 0, corner.y + k * cart.h);
    body.addColorStop(0, blend(colour.first, "#ffffff", 0.28));
    body.addColorStop(1, blend(colour.first, "#000000", 0.18));
    ctx.beginPath();
    ctx.roundRect(corner.x, corner.y, k * cart.w, k * cart.h, k * 0.009);
    ctx.fillStyle = body;
    ctx.fill();
    drawPush(ctx, spot, x, cart, recording, now, k);

    const pivot = spot(x, 0), end = tip(now), w = Math.max(4, k * 0.0125);
    rod(ctx, pivot, end, w, colour.moving, colour["moving-light"]);
    disc(ctx, end, w * 0.72, colour["moving-dark"]);
    disc(ctx, pivot, w * 0.95, colour["metal-dark"]);
    disc(ctx, pivot, w * 0.42, colour["metal-light"]);
  }

  /** An arrow beside the cart: where the motor pushes, and how hard. */
  function drawPush(ctx, spot, x, cart, recording, now, k) {
    const share = at(recording.commands[0], now) / recording.signals[0].high, side = Math.sign(share);
    const length = 0.09 * Math.abs(share);
    if (now.over || length * k < 3) return;
    const begin = x + side * (cart.w / 2 + 0.012), head = Math.min(0.014, length), z = cart.h * 0.12;
    stroke(ctx, [spot(begin, z), spot(begin + side * Math.max(length - head, 0.001), z)], colour.first, Math.max(2, k * 0.006));
    fill(ctx, [spot(begin + side * length, z), spot(begin + side * (length - head), z + 0.6 * head),
      spot(begin + side * (length - head), z - 0.6 * head)], colour.first);
  }

  // ---- the rotary arm and its pendulum ----------------------------------------------------------------------------

  function drawRotary(ctx, width, height, recording, now) {
    const { tracks, sizes } = recording, reach = largest("rotary", "arm"), tall = largest("rotary", "pole");
    const span = 2 * Math.max(reach, 0.75 * tall) + 0.3 * tall, box = 0.5 * reach, low = -1.22 * tall;
    const view = camera(width, height, { azimuth: 0.95, elevation: 0.36, distance: 5 * tall, centre: [0, 0, -0.13 * tall],
      scale: Math.min(width / (1.25 * span), height / (2.85 * tall)) });
    const joint = (m) => {
      const a = along(tracks.theta, m);
      return [sizes.arm * Math.cos(a), sizes.arm * Math.sin(a), 0];
    };
    const tip = (m) => {
      const [x, y] = joint(m), a = along(tracks.theta, m), b = along(tracks.alpha, m), s = sizes.pole * Math.sin(b);
      return [x - s * Math.sin(a), y + s * Math.cos(a), -sizes.pole * Math.cos(b)];
    };
    const [centre, elbow, end] = [[0, 0, 0], joint(now), tip(now)], P = view.project;

    const base = (z) => circle(72, (a) => P([1.02 * reach * Math.cos(a), 1.02 * reach * Math.sin(a), z]));
    ground(ctx, view, [0, 0, low - 0.05 * tall], 1.35 * reach, 0.42);
    fill(ctx, base(low - 0.04 * tall), colour["metal-dark"]);
    fill(ctx, base(low), colour.floor);
    stroke(ctx, base(low), colour.metal, 1);
    ground(ctx, view, [0, 0, low], 1.5 * box, 0.4);
    ground(ctx, view, [end[0], end[1], low], 0.28 * reach, 0.3);
    const power = Math.abs(at(recording.commands[0], now)) / recording.signals[0].high;
    const parts = [
      { depth: P([0, 0, low / 2]).depth, draw: () => drawBox(ctx, view, box, low, -0.15 * tall, power) },
      { depth: P([elbow[0] / 2, elbow[1] / 2, 0]).depth, draw: () => drawArm(ctx, P(centre), P(elbow)) },
      { depth: P(elbow.map((v, i) => (v + end[i]) / 2)).depth, draw: () => drawPendulum(ctx, recording, now, P, tip, elbow, end) },
    ];
    stroke(ctx, circle(32, (a) => P([elbow[0] - 0.07 * tall * Math.sin(along(tracks.theta, now)) * Math.cos(a),
      elbow[1] + 0.07 * tall * Math.cos(along(tracks.theta, now)) * Math.cos(a), sizes.pole + 0.07 * tall * Math.sin(a)])),
      colour.target, 1.8);
    parts.sort((a, b) => b.depth - a.depth).forEach((part) => part.draw());
  }

  /** The motor's cube on its foot; a light on each side glows with the voltage. */
  function drawBox(ctx, view, half, floor, top, power) {
    const P = view.project, bottom = top - 2 * half, tone = [colour["metal-dark"], colour.metal];
    drawSides(ctx, view, 0.55 * half, floor, bottom, [tone[0], tone[0]]);
    drawSides(ctx, view, half, bottom, top, tone, (corner) => {
      fill(ctx, [corner(0.1, 0.1), corner(0.9, 0.1), corner(0.9, 0.9), corner(0.1, 0.9)], shade(0.16));
      ctx.globalAlpha = 0.35 + 0.65 * clamp(power, 0, 1);
      stroke(ctx, [corner(0.24, 0.76), corner(0.76, 0.76)], colour.first, 0.07 * half * P([0, 0, 0]).k);
      ctx.globalAlpha = 1;
    });
    fill(ctx, [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => P([x * half, y * half, top])), colour["metal-light"]);
    stroke(ctx, circle(40, (a) => P([0.62 * half * Math.cos(a), 0.62 * half * Math.sin(a), top])), colour.metal, 1.4);
    rod(ctx, P([0, 0, top]), P([0, 0, 0]), 0.3 * half * P([0, 0, 0]).k, colour["metal-dark"], colour.metal);
  }

  /** The visible sides of an upright box; `decorate` may paint on each, in shares of its width and height. */
  function drawSides(ctx, view, half, bottom, top, [dark, light], decorate = () => {}) {
    const P = view.project, corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => [x * half, y * half]);
    corners.forEach(([x, y], i) => {
      const [u, v] = corners[(i + 1) % 4], outward = [v - y, x - u, 0];
      if (dot(outward, view.away) > 0) return;
      const corner = (s, z) => P([mix(x, u, s), mix(y, v, s), mix(bottom, top, z)]);
      fill(ctx, [corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)],
        blend(dark, light, 0.5 + dot(outward, view.right) / (4 * half)));
      decorate(corner);
    });
  }

  function drawArm(ctx, a, b) {
    const w = 0.011 * a.k;
    rod(ctx, a, b, w, colour.first, blend(colour.first, "#ffffff", 0.45));
    disc(ctx, a, 0.95 * w, colour["metal-dark"]);
    disc(ctx, a, 0.4 * w, colour["metal-light"]);
  }

  function drawPendulum(ctx, recording, now, P, tip, elbow, end) {
    const [a, b] = [P(elbow), P(end)], w = 0.0085 * a.k;
    trail(ctx, recording, now, colour.moving, 0.8 * w, (m) => P(tip(m)));
    rod(ctx, a, b, w, colour.moving, colour["moving-light"]);
    disc(ctx, b, 0.85 * w * (b.k / a.k), colour["moving-dark"]);
    disc(ctx, a, 0.95 * w, colour["metal-dark"]);
    disc(ctx, a, 0.4 * w, colour["metal-light"]);
  }

  // ---- what all pictures share -----------------------------------------------------------------------------------

  /** One curve per signal, one below the other, each over the range that it has in any of the recordings. */
  function drawCurves(ctx, width, height, recording, now) {
    const names = Object.keys(recording.tracks), tall = height / names.length, left = 12, wide = width - 24;
    const x = (i) => left + (wide * Math.min(i * recording.interval, recording.duration)) / duration;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    names.forEach((name, row) => {
      const all = recordings.flatMap((r) => r.tracks[name] ?? []), low = Math.min(...all), span = Math.max(...all) - low || 1;
      const y = (v) => tall * (row + 0.92 - (0.78 * (v - low)) / span), values = recording.tracks[name];
      const points = values.map((v, i) => ({ x: x(i), y: y(v) }));
      const here = { x: left + (wide * now.time) / duration, y: y(at(values, now)) };
      ctx.globalAlpha = 0.28;
      stroke(ctx, points.slice(now.i), colour.first, 1.2);
      ctx.globalAlpha = 1;
      stroke(ctx, [...points.slice(0, now.i + 1), here], colour.first, 1.6);
      disc(ctx, here, 3, colour.moving);
      ctx.fillStyle = colour.quiet;
      ctx.fillText(name, left, tall * row + 1);
    });
  }

  const DRAW = { plate: drawPlate, rail: drawRail, rotary: drawRotary, curves: drawCurves };

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
      stroke(ctx, points.slice(now.i), commandColour(c), 1.2);
      ctx.globalAlpha = 1;
      const here = { x: x(now.time), y: y(at(values, now)) };
      stroke(ctx, [...points.slice(0, now.i + 1), here], commandColour(c), 1.6);
      disc(ctx, here, 3.2, commandColour(c));
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
  const figures = [...root.querySelectorAll(".spota-figure")].map((figure, i) => {
    const [scene, strip] = figure.querySelectorAll("canvas"), recording = recordings[i];
    const [time, earned, ...volts] = figure.querySelectorAll("dd");
    if (volts.length > 1) {
      volts.forEach((dd, c) => dd.previousElementSibling.insertAdjacentHTML("afterbegin", `<i style="background:var(--${c ? "second" : "first"})"></i>`));
    }
    return (t) => {
      const now = moment(recording, t);
      paint(scene, (ctx, w, h) => {
        DRAW[recording.scene](ctx, w, h, recording, now);
        if (recording.failed && now.over) drawFailure(ctx, w, h, recording);
      });
      paint(strip, (ctx, w, h) => drawStrip(ctx, w, h, recording, now));
      time.textContent = `${now.time.toFixed(2)} s`;
      earned.textContent = at(recording.returns, now).toFixed(0).replace("-", "−");
      volts.forEach((dd, c) => { dd.textContent = `${signed(at(recording.commands[c], now))} ${recording.signals[c].unit}`; });
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

  /** Live: frames of a machine that runs now come in, and the oldest leave. */
  const LIVE = 150;
  function grow(recording, frame) {
    const { tracks, turns } = recording;
    if (turns) turns.push(rolled(recording, turns.at(-1), frame.tracks.x - tracks.x.at(-1), frame.tracks.y - tracks.y.at(-1)));
    for (const [name, value] of Object.entries(frame.tracks)) tracks[name].push(value);
    frame.commands.forEach((value, c) => recording.commands[c].push(value));
    recording.returns.push(0);
    if (recording.returns.length <= LIVE) return;
    [recording.returns, ...recording.commands, ...Object.values(tracks), turns ?? []].forEach((values) => values.shift());
  }
  root.addEventListener("spota-frames", ({ detail }) => {
    const recording = recordings[0];
    detail.forEach((frame) => grow(recording, frame));
    recording.duration = duration = (recording.returns.length - 1) * recording.interval;
    play(false);
    time = duration - 1e-6; // not yet over
    draw();
  });

  find(".spota-controls").hidden = false;
  refresh();
  play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
})();
