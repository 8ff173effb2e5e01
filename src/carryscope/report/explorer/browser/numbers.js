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
// of them. The others are taken four at a time: `out` is then read and written a fourth as often.
function addProduct(out, x, W, width) {
  const used = [];
  for (let i = 0; i < x.length; i++) if (x[i] !== 0) used.push(i);
  let n = 0;
  for (; n + 4 <= used.length; n += 4) {
    const [i, j, k, l] = [used[n], used[n + 1], used[n + 2], used[n + 3]];
    const [xi, xj, xk, xl] = [x[i], x[j], x[k], x[l]];
    const [wi, wj, wk, wl] = [i * width, j * width, k * width, l * width];
    for (let c = 0; c < width; c++) {
      out[c] += xi * W[wi + c] + xj * W[wj + c] + xk * W[wk + c] + xl * W[wl + c];
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
