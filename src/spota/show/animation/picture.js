  // ---- pictures: the same data that drawing.py draws ---------------------------------------------------------------

  const mix = (a, b, w) => a + (b - a) * w;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const plus = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
  const times = (M, p) => M.map((row) => dot(row, p));
  const product = (A, B) => A.map((row) => [0, 1, 2].map((j) => row[0] * B[0][j] + row[1] * B[1][j] + row[2] * B[2][j]));
  const circle = (n, point) => Array.from({ length: n + 1 }, (_, i) => point((2 * Math.PI * i) / n));

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

  let colour = {};
  const NAMES = ["surface", "edge", "ink", "quiet", "grid", "floor", "metal", "metal-dark", "metal-light", "board",
    "board-shade", "target", "first", "second", "moving", "moving-light", "moving-dark", "failure", "shadow"];
  function readColours() {
    const style = getComputedStyle(root);
    colour = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
  }
  const shade = (alpha) => `rgba(${colour.shadow}, ${alpha})`;
  const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  /** A colour of the description: a name, or two and the share of the way between them. */
  function paintOf(c) {
    if (typeof c === "string") return c === "shadow" ? shade(1) : colour[c] ?? c;
    const [from, to] = [c[0], c[1]].map((name) => channels(colour[name] ?? name));
    return `rgb(${from.map((v, i) => Math.round(mix(v, to[i], c[2]))).join()})`;
  }

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

  /** Perspective: x to the right, y away, z up, after turning by azimuth and looking down by elevation. */
  function camera(width, height, { azimuth, elevation, distance, centre, extent: [left, right_, bottom, top] }) {
    const [ca, sa, ce, se] = [Math.cos(azimuth), Math.sin(azimuth), Math.cos(elevation), Math.sin(elevation)];
    const right = [ca, sa, 0], up = [-sa * se, ca * se, ce], away = [-sa * ce, ca * ce, -se];
    const scale = Math.min(width / (right_ - left), height / (top - bottom));
    const x = width / 2 - (scale * (left + right_)) / 2, y = height / 2 + (scale * (bottom + top)) / 2;
    function project(p) {
      const q = plus(p, centre, -1), k = (scale * distance) / (distance + dot(q, away));
      return { x: x + k * dot(q, right), y: y - k * dot(q, up), k, depth: dot(q, away) };
    }
    return { project, right, up, away, elevation };
  }

  /** The turn that a quaternion stands for. */
  function spun(q) {
    const [w, x, y, z] = q.map((v) => v / Math.hypot(...q));
    return [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
      [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
      [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]];
  }
  const about = (axis, angle) => spun([Math.cos(angle / 2), ...axis.map((v) => v * Math.sin(angle / 2))]);

  /** How a body is turned, and where it is, at a moment. */
  function pose({ bodies, tracks }, name, now) {
    let turned = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], place = [0, 0, 0];
    for (const [kind, how, track, factor] of bodies[name] ?? []) {
      if (kind === "move") place = plus(place, times(turned, how));
      else if (kind === "slide") place = plus(place, times(turned, how), along(tracks[track], now));
      else if (kind === "turn") turned = product(turned, about(how, factor * along(tracks[track], now)));
      else turned = product(turned, spun(how.map((one) => along(tracks[one], now))));
    }
    return { turned, put: (p) => plus(times(turned, p), place) };
  }

  const SEAMS = [
    circle(48, (a) => [Math.cos(a), Math.sin(a), 0]),
    circle(48, (a) => [Math.cos(a), 0, Math.sin(a)]),
    ...[-0.62, 0.62].map((y) => circle(40, (a) => [0.785 * Math.cos(a), y, 0.785 * Math.sin(a)])),
  ];

  /** A WebP file in base64; when it is there, the moment is drawn again. */
  function loaded(frame) {
    const image = new Image();
    image.onload = draw;
    image.src = "data:image/webp;base64," + frame;
    return image;
  }

  /** How each kind of shape is drawn; `on(body)` is a body's pose now, and `spot(body, point)` where a point is. */
  const BRUSHES = {
    area(ctx, s, { spot }) {
      const points = s.points.map((p) => spot(s.on, p));
      let style = paintOf(s.colour);
      if (s.to) {
        style = ctx.createLinearGradient(points[1].x, points[1].y, points[3].x, points[3].y);
        style.addColorStop(0, paintOf(s.colour));
        style.addColorStop(1, paintOf(s.to));
      }
      fill(ctx, points, style);
    },
    line(ctx, s, { spot }) {
      const points = s.points.map((p) => spot(s.on, p));
      if (s.dashed) ctx.setLineDash([5, 6]);
      stroke(ctx, points, paintOf(s.colour), Math.max(1, s.width * points[0].k));
      ctx.setLineDash([]);
    },
    rod(ctx, s, { spot }) {
      const a = spot(s.on, s.points[0]), b = spot(s.to, s.points[1]), width = s.width * a.k;
      stroke(ctx, [a, b], paintOf(s.colour), width);
      const length = Math.hypot(b.x - a.x, b.y - a.y) || 1, shift = (-0.18 * width) / length;
      const n = { x: -(b.y - a.y) * shift, y: (b.x - a.x) * shift }, up = n.y > 0 ? -1 : 1;
      stroke(ctx, [a, b].map((p) => ({ x: p.x + up * n.x, y: p.y + up * n.y })), paintOf(s.light), 0.35 * width);
    },
    disc(ctx, s, { spot }) {
      const p = spot(s.on, s.at);
      disc(ctx, p, s.radius * p.k, paintOf(s.colour));
    },
    shadow(ctx, s, { on, view }) {
      const [x, y] = on(s.on).put(s.at), p = view.project([x, y, s.level]), r = s.radius * p.k;
      if (Math.hypot(x, y) > (s.within ?? Infinity)) return;
      ctx.save();
      ctx.translate(p.x, p.y);
      ctx.scale(1, Math.sin(view.elevation));
      const soft = ctx.createRadialGradient(0, 0, 0, 0, 0, r);
      [[0, s.alpha], [0.55, 0.6 * s.alpha], [1, 0]].forEach(([share, alpha]) => soft.addColorStop(share, shade(alpha)));
      ctx.globalAlpha = 1;
      disc(ctx, { x: 0, y: 0 }, r, soft);
      ctx.restore();
    },
    trail(ctx, s, { view, recording, now }) {
      const dt = recording.interval / 4, n = Math.floor(Math.min(s.seconds, now.time) / dt), piece = 10;
      const place = (m) => view.project(pose(recording.picture, s.on, m).put(s.at));
      const points = Array.from({ length: n + 1 }, (_, j) => place(j ? moment(recording, now.time - j * dt) : now));
      const width = Math.max(2, s.width * points[0].k);
      ctx.lineCap = "butt";
      for (let j = 0; j < n; j += piece) {
        const age = (j * dt) / s.seconds;
        ctx.globalAlpha = 0.75 * (1 - age) ** 1.2;
        stroke(ctx, points.slice(j, j + piece + 1), paintOf(s.colour), width * (1 - 0.6 * age));
      }
      ctx.lineCap = "round";
    },
    ball(ctx, s, { on, spot, view }) {
      const p = spot(s.on, s.at), r = s.radius * p.k, { turned } = on(s.on);
      const skin = ctx.createRadialGradient(p.x - 0.38 * r, p.y - 0.45 * r, 0.05 * r, p.x, p.y, 1.05 * r);
      [[0, "moving-light"], [0.45, "moving"], [1, "moving-dark"]].forEach(([share, name]) => skin.addColorStop(share, colour[name]));
      disc(ctx, p, r, skin);
      ctx.globalAlpha = 0.55;
      for (const seam of SEAMS) {
        const points = seam.map((q) => times(turned, q));
        for (let j = 1; j < points.length; j++) {
          const ends = [points[j - 1], points[j]];
          if (ends.some((q) => dot(q, view.away) > 0)) continue;
          stroke(ctx, ends.map((q) => ({ x: p.x + r * dot(q, view.right), y: p.y - r * dot(q, view.up) })),
            colour["moving-dark"], Math.max(1, 0.09 * r));
        }
      }
    },
    arrow(ctx, s, { spot, recording, now }) {
      const share = at(recording.picture.tracks[s.track], now), side = Math.sign(share), length = s.length * Math.abs(share);
      if (length < 0.004) return;
      const head = Math.min(0.014, length), put = (x, z) => spot(s.on, plus(s.at, [side * (s.aside + x), 0, z]));
      stroke(ctx, [put(0, 0), put(length - head, 0)], paintOf(s.colour), Math.max(2, 0.006 * put(0, 0).k));
      fill(ctx, [put(length, 0), put(length - head, 0.6 * head), put(length - head, -0.6 * head)], paintOf(s.colour));
    },
    curve(ctx, s, { spot, now }) {
      const points = s.points.map((p) => spot("", p)), [a, b] = points.slice(now.i, now.i + 2);
      const here = { x: mix(a.x, b.x, now.w), y: mix(a.y, b.y, now.w) };
      ctx.globalAlpha = 0.28;
      stroke(ctx, points.slice(now.i), paintOf(s.colour), 1.2);
      ctx.globalAlpha = 1;
      stroke(ctx, [...points.slice(0, now.i + 1), here], paintOf(s.colour), 1.6);
      disc(ctx, here, 3, colour.moving);
    },
    photographs(ctx, s, { spot, now }) {
      s.images ??= s.frames.map(loaded);
      const last = s.images.length - 1, next = s.images[now.over ? last : Math.min(Math.floor(now.time / s.interval + 1e-6), last)];
      if (next.complete && next.naturalWidth) s.shown = next; // until then, the one before
      const [low, high] = s.points.map((p) => spot("", p));
      if (s.shown) ctx.drawImage(s.shown, low.x, high.y, high.x - low.x, low.y - high.y);
    },
    text(ctx, s, { spot }) {
      const p = spot(s.on, s.at);
      ctx.font = s.left ? "11px system-ui, sans-serif" : `600 ${Math.max(11, 0.016 * p.k)}px system-ui, sans-serif`;
      ctx.textAlign = s.left ? "left" : "center";
      ctx.textBaseline = s.left ? "top" : "middle";
      ctx.fillStyle = paintOf(s.colour);
      ctx.fillText(s.text, p.x, p.y);
    },
  };

  /** Parts in their order; neighbours with an anchor come far ones first. */
  function ordered(parts, depth) {
    const found = [];
    for (let i = 0; i < parts.length; ) {
      let j = i;
      while (j < parts.length && parts[j].anchor) j++;
      found.push(...parts.slice(i, j).sort((a, b) => depth(b) - depth(a)), ...parts.slice(j, j + 1));
      i = j + 1;
    }
    return found;
  }

  function drawPicture(ctx, width, height, recording, now) {
    const { picture } = recording, view = camera(width, height, picture), known = {};
    const on = (body) => (known[body] ??= pose(picture, body, now));
    const spot = (body, point) => view.project(on(body).put(point)), where = { view, on, spot, recording, now };
    for (const part of ordered(picture.parts, ({ anchor: [body, point] }) => spot(body, point).depth)) {
      for (const shape of part.shapes) {
        const shine = shape.glow ? 0.35 + 0.65 * clamp(at(picture.tracks[shape.glow], now), 0, 1) : 1;
        ctx.globalAlpha = (shape.kind === "area" ? shape.alpha ?? 1 : 1) * shine;
        BRUSHES[shape.kind](ctx, shape, where);
        ctx.globalAlpha = 1;
      }
    }
  }

