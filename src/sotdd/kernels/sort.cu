// Sorts rows of float32 ascending, keys only, one block of threads to a row at a time.
//
// A sample of the row gives the edges of 64 segments that hold about as many values each; every segment is cut into cells
// of equal width, and one cell for values equal to its edge. Values are counted by cell, scattered to their cells, and
// sorted by warps, some cells at a time. A cell with more values than a warp takes is merged by the whole block, unless
// all of them are equal. Bits of floats order like unsigned integers once negative ones are inverted and the sign of the
// others is set; so NaN is sorted to the ends.

typedef unsigned int u32;

#ifndef THREADS
#define THREADS 1024
#endif

constexpr int kThreads = THREADS, kWarps = kThreads / 32;
constexpr int kSample = 1024, kSegments = 64, kCells = 32, kAllCells = kSegments * kCells;
constexpr int kPerLane = 8, kTaken = 32 * kPerLane;  // values that a warp sorts
constexpr int kBatch = 4;  // values that a thread has at work at a time
constexpr u32 kSign = 0x80000000u, kLast = 0xffffffffu;

__device__ __forceinline__ u32 key_of(u32 bits) { return bits ^ ((u32)((int)bits >> 31) | kSign); }
__device__ __forceinline__ u32 bits_of(u32 key) { return key ^ (((key >> 31) - 1u) | kSign); }
__device__ __forceinline__ float value_of(u32 key) { return __uint_as_float(bits_of(key)); }
__device__ __forceinline__ u32 least(u32 a, u32 b) { return a < b ? a : b; }
__device__ __forceinline__ u32 most(u32 a, u32 b) { return a < b ? b : a; }

struct Shared {
  u32 counts[kAllCells];  // of values by cell, then where a cell begins, then where it ends
  u32 edges[kSegments];
  float lows[kSegments], slopes[kSegments];
  u32 sums[kWarps];
  int large;  // whether a cell is left to the whole block
  union {
    u32 sample[kSample];
    u32 stage[kWarps][kTaken + kTaken / 32];  // padded, so that no two lanes meet in a bank
  };
};

// Which cell a value belongs to; cells are in the order of keys.
__device__ __forceinline__ int cell_of(const Shared& s, u32 bits) {
  const u32 key = key_of(bits);
  const float x = __uint_as_float(bits);
  int segment = 0;
#pragma unroll
  for (int step = kSegments / 2; step; step /= 2)
    if (s.edges[segment + step] <= key) segment += step;
  const float low = s.lows[segment];
  int cell;
  if (x != x) {
    cell = segment == 0 ? 0 : kCells - 1;
  } else if (x <= low) {
    cell = segment > 0 && key == s.edges[segment] ? 0 : 1;
  } else {
    const float place = (x - low) * s.slopes[segment];
    cell = 1 + (place < kCells - 2 ? (int)place : kCells - 2);
  }
  return segment * kCells + cell;
}

// Bitonic sort of kTaken keys; lane l holds places l * kPerLane, …
__device__ __forceinline__ void sort_in_warp(u32 (&v)[kPerLane], int lane) {
#pragma unroll
  for (int k = 2; k <= kTaken; k *= 2) {
#pragma unroll
    for (int j = k / 2; j; j /= 2) {
      if (j >= kPerLane) {
        const bool up = (lane & (k / kPerLane)) == 0, lower = (lane & (j / kPerLane)) == 0;
#pragma unroll
        for (int r = 0; r < kPerLane; ++r) {
          const u32 other = __shfl_xor_sync(kLast, v[r], j / kPerLane);
          v[r] = up == lower ? least(v[r], other) : most(v[r], other);
        }
      } else {
#pragma unroll
        for (int r = 0; r < kPerLane; ++r) {
          if (r & j) continue;
          const bool up = k >= kPerLane ? (lane & (k / kPerLane)) == 0 : (r & k) == 0;
          const u32 a = v[r], b = v[r | j];
          v[r] = up ? least(a, b) : most(a, b);
          v[r | j] = up ? most(a, b) : least(a, b);
        }
      }
    }
  }
}

// Sorts up to kTaken keys of ``from`` and writes them to ``to``: as floats, or as keys.
__device__ __forceinline__ void sort_some(const u32* from, u32* to, int size, u32* stage, int lane, bool as_floats) {
  u32 v[kPerLane];
#pragma unroll
  for (int r = 0; r < kPerLane; ++r) {
    const int at = 32 * r + lane;
    v[r] = at < size ? from[at] : kLast;
  }
  sort_in_warp(v, lane);
#pragma unroll
  for (int r = 0; r < kPerLane; ++r) {
    const int at = kPerLane * lane + r;
    stage[at + at / 32] = v[r];
  }
  __syncwarp();
  for (int at = lane; at < size; at += 32) {
    const u32 key = stage[at + at / 32];
    if (as_floats) __stcs(to + at, bits_of(key)); else to[at] = key;
  }
  __syncwarp();
}

__device__ void find_edges(Shared& s, const u32* row, int n) {
  for (int i = threadIdx.x; i < kSample; i += kThreads) s.sample[i] = key_of(row[(long long)i * n / kSample]);
  __syncthreads();
  for (int k = 2; k <= kSample; k *= 2) {
    for (int j = k / 2; j; j /= 2) {
      for (int t = threadIdx.x; t < kSample / 2; t += kThreads) {
        const int i = 2 * j * (t / j) + t % j;
        const u32 a = s.sample[i], b = s.sample[i + j];
        const bool up = (i & k) == 0;
        if ((a > b) == up) {
          s.sample[i] = b;
          s.sample[i + j] = a;
        }
      }
      __syncthreads();
    }
  }
  if (threadIdx.x < kSegments) {
    const int i = threadIdx.x * (kSample / kSegments), next = i + kSample / kSegments;
    const float low = value_of(s.sample[i]), high = value_of(s.sample[next < kSample ? next : kSample - 1]);
    const float slope = (kCells - 1) / (high - low);
    s.edges[threadIdx.x] = threadIdx.x ? s.sample[i] : 0;
    s.lows[threadIdx.x] = low;
    s.slopes[threadIdx.x] = slope > 0 && slope < 3e38f ? slope : 0.0f;
  }
  __syncthreads();
}

// Turns counts of cells into where they begin.
__device__ void sum_up(Shared& s) {
  constexpr int each = kAllCells / kThreads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u32 mine[each], total = 0;
#pragma unroll
  for (int i = 0; i < each; ++i) {
    mine[i] = total;
    total += s.counts[each * threadIdx.x + i];
  }
  u32 before = total;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const u32 other = __shfl_up_sync(kLast, before, step);
    if (lane >= step) before += other;
  }
  if (lane == 31) s.sums[warp] = before;
  __syncthreads();
  before -= total;
  for (int w = 0; w < warp; ++w) before += s.sums[w];
#pragma unroll
  for (int i = 0; i < each; ++i) s.counts[each * threadIdx.x + i] = before + mine[i];
  __syncthreads();
}

// Where a cell begins, once counts are the ends of cells.
__device__ __forceinline__ int begin_of(const Shared& s, int cell) { return cell ? s.counts[cell - 1] : 0; }

// The first cell that begins at ``place`` or later.
__device__ __forceinline__ int first_from(const Shared& s, int place) {
  int low = 0, high = kAllCells;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (begin_of(s, middle) < place) low = middle + 1; else high = middle;
  }
  return low;
}

__device__ void sort_cells(Shared& s, u32* row, const u32* spare, int n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int last = warp == kWarps - 1 ? kAllCells : first_from(s, (int)((long long)(warp + 1) * n / kWarps));
  int cell = first_from(s, (int)((long long)warp * n / kWarps));
  while (cell < last) {
    const int begin = begin_of(s, cell);
    if (begin == n) break;
    if ((int)s.counts[cell] - begin > kTaken) {
      if (lane == 0) s.large = 1;
      ++cell;
      continue;
    }
    int low = cell + 1, high = last;  // as many cells as a warp takes together
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if ((int)s.counts[middle - 1] - begin <= kTaken) low = middle; else high = middle - 1;
    }
    const int size = (int)s.counts[low - 1] - begin;
    if (size) sort_some(spare + begin, row + begin, size, s.stage[warp], lane, true);
    cell = low;
  }
}

// Merges runs of keys, each twice as long as before; what is in ``spare`` ends as floats in ``row``.
__device__ void merge_cell(Shared& s, u32* row, u32* spare, int size) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int same = 1;
  for (int i = threadIdx.x; i < size; i += kThreads) same &= spare[i] == spare[0];
  u32 *from = spare, *to = row;
  if (!__syncthreads_and(same)) {
    for (int first = warp * kTaken; first < size; first += kWarps * kTaken)
      sort_some(spare + first, spare + first, min(kTaken, size - first), s.stage[warp], lane, false);
    __syncthreads();
    for (int width = kTaken; width < size; width *= 2) {
      for (int i = threadIdx.x; i < size; i += kThreads) {
        const int first = i / (2 * width) * (2 * width), middle = min(first + width, size);
        const bool left = i < middle;
        const u32 key = from[i];
        int low = left ? middle : first, high = left ? min(first + 2 * width, size) : middle;
        const int base = low;
        while (low < high) {  // how many of the other run come before: equal ones of the left do
          const int at = (low + high) / 2;
          if (left ? from[at] < key : from[at] <= key) low = at + 1; else high = at;
        }
        to[first + (left ? i - first : i - middle) + low - base] = key;
      }
      __syncthreads();
      u32* const other = from;
      from = to;
      to = other;
    }
  }
  for (int i = threadIdx.x; i < size; i += kThreads) row[i] = bits_of(from[i]);
  __syncthreads();
}

// Counts the values of a row by cell.
__device__ void count_cells(Shared& s, const u32* row, int n) {
  for (int first = threadIdx.x; first < n; first += kBatch * kThreads) {
    int cells[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k * kThreads;
      cells[k] = i < n ? cell_of(s, row[i]) : -1;
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k)
      if (cells[k] >= 0) atomicAdd(&s.counts[cells[k]], 1u);
  }
}

// Writes keys to their cells; what was the begin of a cell becomes its end.
__device__ void scatter(Shared& s, const u32* row, u32* spare, int n) {
  for (int first = threadIdx.x; first < n; first += kBatch * kThreads) {
    u32 keys[kBatch];
    int cells[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k * kThreads;
      const u32 bits = i < n ? __ldcs(row + i) : 0;
      cells[k] = i < n ? cell_of(s, bits) : -1;
      keys[k] = key_of(bits);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k)
      if (cells[k] >= 0) spare[atomicAdd(&s.counts[cells[k]], 1u)] = keys[k];
  }
}

// Every block takes one row after another. What it scatters to, one row of ``spares``, is always the same memory and
// stays in the cache, where single values can be written to; few blocks are at work for that.
extern "C" __global__ void __launch_bounds__(kThreads) sort_rows(u32* rows, u32* spares, int count, int n) {
  __shared__ Shared s;
  u32* const spare = spares + (long long)blockIdx.x * n;
  for (int line = blockIdx.x; line < count; line += gridDim.x) {
    u32* const row = rows + (long long)line * n;
    for (int i = threadIdx.x; i < kAllCells; i += kThreads) s.counts[i] = 0;
    if (threadIdx.x == 0) s.large = 0;
    find_edges(s, row, n);
    count_cells(s, row, n);
    __syncthreads();
    sum_up(s);
    scatter(s, row, spare, n);
    __syncthreads();
    sort_cells(s, row, spare, n);
    __syncthreads();
    for (int cell = 0; s.large && cell < kAllCells; ++cell) {
      const int begin = begin_of(s, cell), size = (int)s.counts[cell] - begin;
      if (size > kTaken) merge_cell(s, row + begin, spare + begin, size);
    }
    __syncthreads();
  }
}
