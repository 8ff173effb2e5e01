// Arithmetic on arrays. Weights are float32 as in Python; sums are kept in float64.

function rowOf(array, row, width) {
  return array.subarray(row * width, (row + 1) * width);
}

function addTo(out, x) {
  for (let i = 0; i < out.length; i++) out[i] += x[i];
}

// out += x W, for W of x.length rows and `width` columns.
//
// This is where the time goes. Rows of W whose x is 0 are passed over: after a ReLU that is most
// of them. The others are taken eight at a time: `out` is then read and written an eighth as often.
function addProduct(out, x, W, width) {
  const used = [];
  for (let i = 0; i < x.length; i++) if (x[i] !== 0) used.push(i);
  let n = 0;
  for (; n + 8 <= used.length; n += 8) {
    const [i0, i1, i2, i3, i4, i5, i6, i7] = used.slice(n, n + 8);
    const [x0, x1, x2, x3] = [x[i0], x[i1], x[i2], x[i3]];
    const [x4, x5, x6, x7] = [x[i4], x[i5], x[i6], x[i7]];
    const [w0, w1, w2, w3] = [i0 * width, i1 * width, i2 * width, i3 * width];
    const [w4, w5, w6, w7] = [i4 * width, i5 * width, i6 * width, i7 * width];
    for (let c = 0; c < width; c++) {
      const low = x0 * W[w0 + c] + x1 * W[w1 + c] + x2 * W[w2 + c] + x3 * W[w3 + c];
      const high = x4 * W[w4 + c] + x5 * W[w5 + c] + x6 * W[w6 + c] + x7 * W[w7 + c];
      out[c] += low + high;
    }
  }
  for (; n < used.length; n++) {
    const xi = x[used[n]];
    const wi = used[n] * width;
    for (let c = 0; c < width; c++) out[c] += xi * W[wi + c];
  }
}

// In place. If everything is hidden, nothing is read: all zero, as in Python.
function softmax(scores) {
  const most = Math.max(...scores);
  if (most === -Infinity) return scores.fill(0);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += scores[i] = Math.exp(scores[i] - most);
  for (let i = 0; i < scores.length; i++) scores[i] /= total;
  return scores;
}

function probabilities(logits) {
  return softmax(Float64Array.from(logits));
}

function highest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}
