// The transformer, row by row, as `model/transformer.py` has it: tokens in, logits out.
//
// A row reads only rows before it, so the answer can be written digit by digit with all earlier
// rows kept. A row is computed again only if something that reaches it has changed: its token,
// what it reads, or what is taken away there. In the last layer only answer rows matter; of the
// others keys and values are needed, nothing else.

class Transformer {
  // `firstLayer` holds what layer 0 reads and asks for, by position and token; machines share it.
  constructor(layout, tensors, firstLayer = new Map()) {
    Object.assign(this, { layout, tensors, firstLayer, kept: null, donor: null });
    const { context, layers, dModel, dHead, dMlp, heads, symbols } = layout;
    const dHeads = heads * dHead;
    const perLayer = (size) => Array.from({ length: layers }, () => new Float64Array(size));
    this.tokens = new Int32Array(context).fill(-1);
    this.stream = perLayer(context * dModel);
    this.keys = perLayer(context * dHeads);
    this.values = perLayer(context * dHeads);
    this.patterns = perLayer(heads * context * context);
    this.planKeys = Array.from({ length: layers }, () => new Array(context).fill(null));
    this.logits = Array.from({ length: context }, () => new Float64Array(symbols.length));
    this.residual = new Float64Array(dModel);
    this.normal = new Float64Array(dModel);
    this.query = new Float64Array(dHeads);
    this.z = new Float64Array(dHeads);
    this.neurons = new Float64Array(dMlp);
    this.written = new Float64Array(dModel);
  }

  // The answer to a question, digit by digit. Free running: each row reads what the model
  // itself wrote. With `forced` tokens it reads those instead.
  run(question, plan, forced = null) {
    const { firstRow, lastRow } = this.layout;
    const tokens = questionTokens(question, this.layout);
    const reread = new Array(this.layout.layers).fill(false);
    for (let row = 0; row < lastRow; row++) {
      const changed = this.runRow(row, tokens[row], plan, reread);
      if (row < firstRow) continue;
      if (changed) this.unembed(row);
      tokens.push(forced ? forced[row - firstRow] : highest(this.logits[row]));
    }
    const answer = tokens.slice(firstRow + 1);
    return { tokens, answer, logits: this.logits.slice(firstRow, lastRow).map((l) => [...l]) };
  }

  // One row through all layers. Says whether anything changed since the last run.
  // `reread[layer]` becomes true from the first row on whose keys and values changed.
  runRow(row, token, plan, reread) {
    const { layers, firstRow } = this.layout;
    let changed = token !== this.tokens[row];
    if (changed) this.embed(row, token);
    for (let layer = 0; layer < layers; layer++) {
      if (changed) {
        this.readable(layer, row, token);
        reread[layer] = true;
      }
      if (layer === layers - 1 && row < firstRow) return changed;
      const key = plan.key(layer, row);
      if (!changed && !reread[layer] && key === this.planKeys[layer][row]) continue;
      this.block(layer, row, plan);
      this.planKeys[layer][row] = key;
      changed = true;
    }
    return changed;
  }

  part(name) {
    return this.tensors[name];
  }

  embed(row, token) {
    const { dModel } = this.layout;
    const W_E = this.part("embed.W_E");
    const W_pos = this.part("pos_embed.W_pos");
    const stream = this.streamAt(0, row);
    for (let d = 0; d < dModel; d++) stream[d] = W_E[token * dModel + d] + W_pos[row * dModel + d];
    this.tokens[row] = token;
  }

  // The residual stream before a layer, at a row.
  streamAt(layer, row) {
    return rowOf(this.stream[layer], row, this.layout.dModel);
  }

  // Keys and values of a row, for later rows to read.
  readable(layer, row, token) {
    const key = rowOf(this.keys[layer], row, this.query.length);
    const value = rowOf(this.values[layer], row, this.query.length);
    if (layer === 0) {
      const known = this.known(row, token);
      key.set(known.K);
      value.set(known.V);
      return;
    }
    this.layerNorm(`blocks.${layer}.ln1`, this.streamAt(layer, row));
    this.project(layer, "K", key);
    this.project(layer, "V", value);
  }

  // What a row asks for.
  asks(layer, row) {
    const known = layer === 0 ? this.known(row, this.tokens[row]) : {};
    if (known.Q) return this.query.set(known.Q);
    this.layerNorm(`blocks.${layer}.ln1`, this.streamAt(layer, row));
    this.project(layer, "Q", this.query);
    known.Q = this.query.slice();
  }

  // Queries, keys and values of layer 0 follow from position and token alone: computed once.
  known(row, token) {
    const place = row * this.layout.symbols.length + token;
    if (!this.firstLayer.has(place)) {
      this.layerNorm("blocks.0.ln1", this.streamAt(0, row));
      const found = { Q: null };
      for (const which of ["K", "V"]) {
        found[which] = new Float64Array(this.query.length);
        this.project(0, which, found[which]);
      }
      this.firstLayer.set(place, found);
    }
    return this.firstLayer.get(place);
  }

  // The normalized stream times W_Q, W_K or W_V of every head.
  project(layer, which, out) {
    const { heads, dModel, dHead } = this.layout;
    const W = this.part(`blocks.${layer}.attn.W_${which}`);
    out.set(this.part(`blocks.${layer}.attn.b_${which}`));
    for (let head = 0; head < heads; head++) {
      addProduct(rowOf(out, head, dHead), this.normal, rowOf(W, head, dModel * dHead), dHead);
    }
  }

  // One block at one row: attention, then the MLP, then whatever replaces the row.
  block(layer, row, plan) {
    const place = plan.at(layer, row);
    const name = `blocks.${layer}`;
    this.residual.set(this.streamAt(layer, row));
    this.asks(layer, row);
    this.attend(layer, row, place);
    this.keep(`mean.${layer}.z`, row, this.z);
    for (const head of place.heads) this.replaceHead(layer, row, head, plan.how);
    addTo(this.residual, this.part(`${name}.attn.b_O`));
    addProduct(this.residual, this.z, this.part(`${name}.attn.W_O`), this.layout.dModel);
    if (this.layout.dMlp > 0) addTo(this.residual, this.mlp(layer, row, place, plan.how));
    this.keep(`mean.${layer}.resid_post`, row, this.residual);
    if (place.whole) this.replaced(this.residual, `mean.${layer}.resid_post`, row, plan.how);
    if (layer + 1 < this.layout.layers) this.streamAt(layer + 1, row).set(this.residual);
  }

  attend(layer, row, place) {
    const { heads, dHead } = this.layout;
    const dHeads = heads * dHead;
    const keys = this.keys[layer];
    const values = this.values[layer];
    this.z.fill(0);
    for (let head = 0; head < heads; head++) {
      const start = head * dHead;
      const pattern = this.patternAt(layer, head, row);
      for (let p = 0; p <= row; p++) {
        let score = 0;
        const at = p * dHeads + start;
        for (let e = 0; e < dHead; e++) score += this.query[start + e] * keys[at + e];
        pattern[p] = place.cuts.has(`${head}.${p}`) ? -Infinity : score / Math.sqrt(dHead);
      }
      softmax(pattern);
      for (let p = 0; p <= row; p++) {
        const at = p * dHeads + start;
        for (let e = 0; e < dHead; e++) this.z[start + e] += pattern[p] * values[at + e];
      }
    }
  }

  // The attention of a head at a row over the positions it can see.
  patternAt(layer, head, row) {
    const { context } = this.layout;
    const start = (head * context + row) * context;
    return this.patterns[layer].subarray(start, start + row + 1);
  }

  replaceHead(layer, row, head, how) {
    const { heads, dHead } = this.layout;
    this.replaced(rowOf(this.z, head, dHead), `mean.${layer}.z`, row * heads + head, how);
  }

  mlp(layer, row, place, how) {
    const { dMlp, dModel } = this.layout;
    const name = `blocks.${layer}`;
    if (place.mlp) {
      this.replaced(this.written, `mean.${layer}.mlp_out`, row, how);
      return this.written;
    }
    this.layerNorm(`${name}.ln2`, this.residual);
    this.neurons.set(this.part(`${name}.mlp.b_in`));
    addProduct(this.neurons, this.normal, this.part(`${name}.mlp.W_in`), dMlp);
    for (let i = 0; i < dMlp; i++) if (this.neurons[i] < 0) this.neurons[i] = 0;
    this.written.set(this.part(`${name}.mlp.b_out`));
    addProduct(this.written, this.neurons, this.part(`${name}.mlp.W_out`), dModel);
    this.keep(`mean.${layer}.mlp_out`, row, this.written);
    return this.written;
  }

  // A machine that lends its values to others keeps them, under the names of their means.
  keep(name, row, value) {
    if (!this.kept) return;
    this.kept[name] ??= new Float64Array(this.layout.lastRow * value.length);
    rowOf(this.kept[name], row, value.length).set(value);
  }

  // Put zero, the mean at this row, or the value in another sum in the place of a value.
  replaced(value, mean, row, how) {
    if (how === "zero") return value.fill(0);
    const from = how === "mean" ? this.part(mean) : this.donor.kept[mean];
    value.set(rowOf(from, row, value.length));
  }

  layerNorm(name, x) {
    const { dModel, epsilon } = this.layout;
    const w = this.part(`${name}.w`);
    const b = this.part(`${name}.b`);
    let mean = 0;
    let square = 0;
    for (let d = 0; d < dModel; d++) mean += x[d] / dModel;
    for (let d = 0; d < dModel; d++) square += (x[d] - mean) ** 2 / dModel;
    const scale = Math.sqrt(square + epsilon);
    for (let d = 0; d < dModel; d++) this.normal[d] = ((x[d] - mean) / scale) * w[d] + b[d];
  }

  unembed(row) {
    const logits = this.logits[row];
    this.layerNorm("ln_final", this.residual);
    logits.set(this.part("unembed.b_U"));
    addProduct(logits, this.normal, this.part("unembed.W_U"), logits.length);
  }
}
