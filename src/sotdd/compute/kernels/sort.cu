// Sorts rows of float32 ascending, keys only, one block of threads to a row at a time.
//
// A sample of the row gives the edges of 64 segments that hold about as many values each; every segment is cut into cells
// of equal width, and one cell for values equal to its edge. Values are counted by cell, scattered to their cells in
// shared memory, and sorted by warps, some cells at a time. A row that does not fit there is taken in parts of whole
// cells, one after another. A cell with more values than a warp takes is merged by the whole block, unless all of them
// are equal. Bits of floats order like unsigned integers once negative ones are inverted and the sign of the others is
// set; so NaN is sorted to the ends.
//
// What suits rows of one length is slow for others, so these numbers come from whoever compiles this (keys.py): THREADS
// of a block, how many blocks are RESIDENT on a processor, SAMPLE, CELLS of a segment, values PER_LANE that a warp sorts.

typedef unsigned int u32;
typedef unsigned short u16;

constexpr int kThreads = THREADS, kWarps = kThreads / 32;
constexpr int kSample = SAMPLE, kSegments = 64, kCells = CELLS, kAllCells = kSegments * kCells;
constexpr int kPerLane = PER_LANE, kTaken = 32 * kPerLane;  // values that a warp sorts
constexpr int kBatch = 8;  // values that a thread has at work at a time
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

// The edges that every search begins with, in registers: every eighth.
struct Top {
  u32 edges[7];
};

// Which cell a value belongs to; cells are in the order of keys.
__device__ __forceinline__ int cell_of(const Shared& s, const Top& top, u32 bits) {
  const u32 key = key_of(bits);
  const float x = __uint_as_float(bits);
  const bool a = top.edges[3] <= key, b = (a ? top.edges[5] : top.edges[1]) <= key;
  const bool c = (a ? (b ? top.edges[6] : top.edges[4]) : (b ? top.edges[2] : top.edges[0])) <= key;
  int segment = kSegments / 8 * (4 * a + 2 * b + c);
#pragma unroll
  for (int step = kSegments / 16; step; step /= 2)
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

// Where a cell begins, once counts are the ends of it and of those before.
__device__ __forceinline__ int begin_of(const Shared& s, int cell) { return cell ? s.counts[cell - 1] : 0; }

// Some consecutive cells of a row, and how many values come before them.
struct Part {
  int first, last, begin, end;
};

// As many cells from ``first`` on as hold no more values than ``most``; counts are still where cells begin.
__device__ Part part_from(const Shared& s, int first, int n, int most) {
  const int begin = s.counts[first];
  int low = first, high = kAllCells;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if ((middle < kAllCells ? (int)s.counts[middle] : n) - begin <= most) low = middle; else high = middle - 1;
  }
  return {first, low, begin, low < kAllCells ? (int)s.counts[low] : n};
}

// The next part, of no more values than ``capacity``. The last one need not be copied, so others are kept small.
__device__ Part next_part(const Shared& s, int first, int n, int capacity) {
  const int left = n - (int)s.counts[first], others = (left - 1) / capacity;
  const Part small = part_from(s, first, n, left - others * capacity + (others ? capacity / 32 : 0));
  return small.last > first && small.end - small.begin <= capacity ? small : part_from(s, first, n, capacity);
}

// The first cell of a part that begins at ``place`` or later.
__device__ __forceinline__ int first_from(const Shared& s, const Part& part, int place) {
  int low = part.first, high = part.last;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (begin_of(s, middle) < place) low = middle + 1; else high = middle;
  }
  return low;
}

// Sorts the cells of a part, which are in ``held``, into their places in ``out``.
__device__ void sort_cells(Shared& s, const Part& part, const u32* held, u32* out) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, size_of_part = part.end - part.begin;
  const int place = part.begin + (int)((long long)warp * size_of_part / kWarps);
  const int next = part.begin + (int)((long long)(warp + 1) * size_of_part / kWarps);
  const int last = warp == kWarps - 1 ? part.last : first_from(s, part, next);
  int cell = first_from(s, part, place);
  while (cell < last) {
    const int begin = begin_of(s, cell);
    if (begin == part.end) break;
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
    if (size) sort_some(held + begin - part.begin, out + begin, size, s.stage[warp], lane, true);
    cell = low;
  }
}

// Merges runs of keys, each twice as long as before; what is in ``held`` ends as floats in ``out``.
__device__ void merge_cell(Shared& s, u32* held, u32* out, int size) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int same = 1;
  for (int i = threadIdx.x; i < size; i += kThreads) same &= held[i] == held[0];
  u32 *from = held, *to = out;
  if (!__syncthreads_and(same)) {
    for (int first = warp * kTaken; first < size; first += kWarps * kTaken)
      sort_some(held + first, held + first, min(kTaken, size - first), s.stage[warp], lane, false);
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
  for (int i = threadIdx.x; i < size; i += kThreads) out[i] = bits_of(from[i]);
  __syncthreads();
}

// Counts the values of a row by cell, and notes the cell of each.
__device__ void count_cells(Shared& s, const u32* row, u16* cells, int n) {
  Top top;
#pragma unroll
  for (int k = 0; k < 7; ++k) top.edges[k] = s.edges[kSegments / 8 * (k + 1)];
  for (int first = threadIdx.x; first < n; first += kBatch * kThreads) {
    int found[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k * kThreads;
      found[k] = i < n ? cell_of(s, top, row[i]) : -1;
      if (i < n) cells[i] = (u16)found[k];
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k)
      if (found[k] >= 0) atomicAdd(&s.counts[found[k]], 1u);
  }
}

// Writes the keys of a part to their cells in ``held``; what was the begin of a cell becomes its end.
__device__ void scatter(Shared& s, const Part& part, const u32* row, const u16* cells, u32* held, int n) {
  for (int first = threadIdx.x; first < n; first += kBatch * kThreads) {
    u32 keys[kBatch];
    int found[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k * kThreads;
      const int cell = i < n ? cells[i] : -1;
      const bool mine = cell >= part.first && cell < part.last;
      found[k] = mine ? cell : -1;
      if (mine) keys[k] = key_of(row[i]);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k)
      if (found[k] >= 0) held[(int)atomicAdd(&s.counts[found[k]], 1u) - part.begin] = keys[k];
  }
}

// Sorts one part of a row into its places in ``out``.
__device__ void sort_part(Shared& s, const Part& part, const u32* row, const u16* cells, u32* held, u32* out, int n) {
  scatter(s, part, row, cells, held, n);
  __syncthreads();
  sort_cells(s, part, held, out);
  __syncthreads();
  for (int cell = part.first; s.large && cell < part.last; ++cell) {
    const int begin = begin_of(s, cell), size = (int)s.counts[cell] - begin;
    if (size > kTaken) merge_cell(s, held + begin - part.begin, out + begin, size);
  }
  __syncthreads();
  if (threadIdx.x == 0) s.large = 0;
  __syncthreads();
}

// Every block takes one row after another. Shared memory holds ``capacity`` values and, with ``inside``, the cells of all;
// otherwise these are in ``spares``. There, too, are the parts that are sorted until the row has been read for the last
// time; or all of its values, where a single cell is beyond the capacity.
extern "C" __global__ void __launch_bounds__(kThreads, RESIDENT)
    sort_rows(u32* rows, u32* spares, int count, int n, int capacity, int inside) {
  __shared__ Shared s;
  extern __shared__ u32 held[];
  u32* const spare = spares + (long long)blockIdx.x * (n + (n + 1) / 2);
  u16* const cells = (u16*)(inside ? held + capacity : spare + n);
  for (int line = blockIdx.x; line < count; line += gridDim.x) {
    u32* const row = rows + (long long)line * n;
    for (int i = threadIdx.x; i < kAllCells; i += kThreads) s.counts[i] = 0;
    if (threadIdx.x == 0) s.large = 0;
    find_edges(s, row, n);
    count_cells(s, row, cells, n);
    __syncthreads();
    int beyond = 0;
    for (int i = threadIdx.x; i < kAllCells; i += kThreads) beyond |= (int)s.counts[i] > capacity;
    beyond = __syncthreads_or(beyond);
    sum_up(s);
    if (beyond) {
      sort_part(s, {0, kAllCells, 0, n}, row, cells, spare, row, n);
      continue;
    }
    Part part = {0, 0, 0, 0};
    while (part.last < kAllCells) {
      part = next_part(s, part.last, n, capacity);
      __syncthreads();
      sort_part(s, part, row, cells, held, part.end == n ? row : spare, n);
      if (part.end == n) break;
    }
    for (int i = threadIdx.x; i < part.begin; i += kThreads) row[i] = spare[i];
    __syncthreads();
  }
}
