// Sorts rows of float32 ascending, keys only, one block of threads to a row at a time, or a cluster of two.
//
// A sample of the row gives the edges of 64 segments that hold about as many values each; every segment is cut into cells
// of equal width, and one cell for values equal to its edge. Each block reads its share of the row and counts values by
// cell. Cells are shared out among the blocks, in order and about as many values to each, and every value is written to
// its cell, in shared memory, perhaps that of the other block. There warps sort several cells at a time, each by a few
// lanes: the fewer lanes, the fewer shuffles. A cell with more values than that is sorted by the whole warp, and beyond
// that merged by the whole block, unless all of them are equal. Bits of floats order like unsigned integers once negative
// ones are inverted and the sign of the others is set; so NaN is sorted to the ends.
//
// What suits rows of one length is slow for others, so these numbers come from whoever compiles this (fused.py): THREADS
// of a block, how many blocks are RESIDENT on a processor, BLOCKS of a cluster, SAMPLE, and CELLS of a segment.

typedef unsigned int u32;
typedef unsigned short u16;

constexpr int kThreads = THREADS, kWarps = kThreads / 32;
constexpr int kSample = SAMPLE, kSegments = 64, kCells = CELLS, kAllCells = kSegments * kCells;
constexpr int kPerLane = 8, kLanes = 8, kFew = kLanes * kPerLane, kMany = 32 * kPerLane;  // values sorted together
constexpr int kBatch = 8;  // values that a thread has at work at a time
constexpr int kBlocks = BLOCKS;
constexpr u32 kSign = 0x80000000u, kLast = 0xffffffffu;

__device__ __forceinline__ u32 key_of(u32 bits) { return bits ^ ((u32)((int)bits >> 31) | kSign); }
__device__ __forceinline__ u32 bits_of(u32 key) { return key ^ (((key >> 31) - 1u) | kSign); }
__device__ __forceinline__ float value_of(u32 key) { return __uint_as_float(bits_of(key)); }
__device__ __forceinline__ u32 least(u32 a, u32 b) { return a < b ? a : b; }
__device__ __forceinline__ u32 most(u32 a, u32 b) { return a < b ? b : a; }
// Where a value is staged: padded, so that lanes rarely meet in a bank.
__device__ __forceinline__ int padded(int at) { return at + at / 32; }
constexpr int kStage = kMany + kMany / 32;

// ------------------------------------------------------------------ clusters, which there are from Hopper on

__device__ __forceinline__ int rank_in_cluster() { return kBlocks == 1 ? 0 : blockIdx.x % kBlocks; }

__device__ __forceinline__ void sync_cluster() {
#if BLOCKS > 1
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}

// The same place in the shared memory of another block of the cluster.
__device__ __forceinline__ u32* in_block(u32* here, int rank) {
#if BLOCKS > 1
  u32* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(here), "r"(rank));
  return there;
#else
  return here;
#endif
}

struct Shared {
  u32 counts[kAllCells];      // of values by cell, then where the next value of a cell goes
  u32 begins[kAllCells + 1];  // where cells begin in the sorted row
  u32 edges[kSegments];
  float lows[kSegments], slopes[kSegments];
  u32 sums[kWarps];
  int bounds[kBlocks + 1];  // the first cell of each block
  u32* homes[kBlocks];      // where the row would begin if all of it were in this block's memory
  int large;                    // whether a cell is left to the whole block
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

__device__ void find_edges(Shared& s, u32* sample, const u32* row, int n) {
  for (int i = threadIdx.x; i < kSample; i += kThreads) sample[i] = key_of(row[(long long)i * n / kSample]);
  __syncthreads();
  for (int k = 2; k <= kSample; k *= 2) {
    for (int j = k / 2; j; j /= 2) {
      for (int t = threadIdx.x; t < kSample / 2; t += kThreads) {
        const int i = 2 * j * (t / j) + t % j;
        const u32 a = sample[i], b = sample[i + j];
        const bool up = (i & k) == 0;
        if ((a > b) == up) {
          sample[i] = b;
          sample[i + j] = a;
        }
      }
      __syncthreads();
    }
  }
  if (threadIdx.x < kSegments) {
    const int i = threadIdx.x * (kSample / kSegments), next = i + kSample / kSegments;
    const float low = value_of(sample[i]), high = value_of(sample[next < kSample ? next : kSample - 1]);
    const float slope = (kCells - 1) / (high - low);
    s.edges[threadIdx.x] = threadIdx.x ? sample[i] : 0;
    s.lows[threadIdx.x] = low;
    s.slopes[threadIdx.x] = slope > 0 && slope < 3e38f ? slope : 0.0f;
  }
  __syncthreads();
}

// Counts some values by cell, and notes the cell of each.
__device__ void count_cells(Shared& s, const u32* values, u16* cells, int n) {
  Top top;
#pragma unroll
  for (int k = 0; k < 7; ++k) top.edges[k] = s.edges[kSegments / 8 * (k + 1)];
  for (int first = threadIdx.x; first < n; first += kBatch * kThreads) {
    int found[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k * kThreads;
      found[k] = i < n ? cell_of(s, top, values[i]) : -1;
      if (i < n) cells[i] = (u16)found[k];
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k)
      if (found[k] >= 0) atomicAdd(&s.counts[found[k]], 1u);
  }
}

// Finds where every cell begins, and turns counts into where the values of this block go. Returns the size of the largest
// cell that this thread looked at.
__device__ int place_cells(Shared& s, int n, int rank) {
  constexpr int each = kAllCells / kThreads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, mine = each * threadIdx.x;
  u32 sizes[each], before[each], total = 0, largest = 0;
#pragma unroll
  for (int i = 0; i < each; ++i) sizes[i] = before[i] = 0;
  #pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    const u32* const counts = in_block(s.counts + mine, block);
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const u32 count = counts[i];
      if (block < rank) before[i] += count;
      sizes[i] += count;
    }
  }
#pragma unroll
  for (int i = 0; i < each; ++i) {
    total += sizes[i];
    largest = most(largest, sizes[i]);
  }
  u32 begin = total;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const u32 other = __shfl_up_sync(kLast, begin, step);
    if (lane >= step) begin += other;
  }
  if (lane == 31) s.sums[warp] = begin;
  sync_cluster();  // all have read the counts
  begin -= total;
  for (int w = 0; w < warp; ++w) begin += s.sums[w];
#pragma unroll
  for (int i = 0; i < each; ++i) {
    s.begins[mine + i] = begin;
    s.counts[mine + i] = begin + before[i];
    begin += sizes[i];
  }
  if (threadIdx.x == 0) s.begins[kAllCells] = n;
  return largest;
}

// The first cell from ``low`` to ``high`` that begins at ``place`` or later.
__device__ __forceinline__ int first_from(const Shared& s, int low, int high, int place) {
  while (low < high) {
    const int middle = (low + high) / 2;
    if ((int)s.begins[middle] < place) low = middle + 1; else high = middle;
  }
  return low;
}

// Writes the keys of some values to their cells: in ``keys``, by their place in the row, or in the memory of their block.
__device__ __forceinline__ void scatter(Shared& s, const u32* values, const u16* cells, int n, u32* keys, bool alone) {
  u32 ends[kBlocks];  // of what is in the memory of each block
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) ends[block] = s.begins[s.bounds[block + 1]];
  for (int first = threadIdx.x; first < n; first += kBatch * kThreads) {
    u32 found[kBatch], places[kBatch];
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k * kThreads;
      if (i < n) found[k] = key_of(values[i]);
      if (i < n) places[k] = atomicAdd(&s.counts[cells[i]], 1u);
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (first + k * kThreads >= n) continue;
      int home = 0;
#pragma unroll
      for (int block = 0; block < kBlocks - 1; ++block) home += places[k] >= ends[block];
      (alone ? keys : s.homes[home])[places[k]] = found[k];
    }
  }
}

// Bitonic sort of the keys of some lanes; lane l of them holds places l * kPerLane, …
template <int kTogether>
__device__ __forceinline__ void sort_in_lanes(u32 (&v)[kPerLane], int lane) {
#pragma unroll
  for (int k = 2; k <= kTogether * kPerLane; k *= 2) {
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

// Sorts keys, by as many lanes of a warp as are to work together, into ``stage`` from ``offset`` on.
template <int kTogether>
__device__ __forceinline__ void sort_some(const u32* keys, int size, u32* stage, int offset) {
  const int lane = threadIdx.x % kTogether;
  u32 v[kPerLane];
#pragma unroll
  for (int r = 0; r < kPerLane; ++r) {
    const int at = kTogether * r + lane;
    v[r] = at < size ? keys[at] : kLast;
  }
  sort_in_lanes<kTogether>(v, lane);
#pragma unroll
  for (int r = 0; r < kPerLane; ++r) {
    const int at = kPerLane * lane + r;
    if (at < size) stage[padded(offset + at)] = v[r];
  }
  __syncwarp();
}

// Sorts some cells, whose keys lie in ``keys`` by their place in the row, into the row.
__device__ void sort_cells(Shared& s, int first, int last, const u32* keys, u32* row, u32* stages) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long begin = s.begins[first], size = s.begins[last] - begin;
  u32* const stage = stages + warp * kStage;
  int cell = first_from(s, first, last, (int)(begin + warp * size / kWarps));
  last = warp == kWarps - 1 ? last : first_from(s, first, last, (int)(begin + (warp + 1) * size / kWarps));
  while (cell < last) {
    const int start = s.begins[cell], many = (int)s.begins[cell + 1] - start;
    int end = start;
    if (many > kFew) {
      ++cell;
      if (many > kMany) {
        s.large = 1;
        continue;
      }
      sort_some<32>(keys + start, many, stage, 0);
      end = start + many;
    } else {
      int own = start, few = 0;
#pragma unroll
      for (int group = 0; group < 32 / kLanes; ++group) {  // each takes as many cells as it can
        const int next = cell + 1 + lane;
        const int taken = __popc(__ballot_sync(kLast, next <= last && (int)s.begins[next] - end <= kFew));
        cell += taken;
        if (lane / kLanes == group) own = end, few = (int)s.begins[cell] - end;
        end = s.begins[cell];
      }
      sort_some<kLanes>(keys + own, few, stage, own - start);
    }
    for (int i = lane; i < end - start; i += 32) __stcs(row + start + i, bits_of(stage[padded(i)]));
    __syncwarp();
  }
}

// Merges runs of keys, each twice as long as before; what is in ``held`` ends as floats in ``out``.
__device__ void merge_cell(u32* held, u32* out, int size, u32* stages) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u32* const stage = stages + warp * kStage;
  int same = 1;
  for (int i = threadIdx.x; i < size; i += kThreads) same &= held[i] == held[0];
  u32 *from = held, *to = out;
  if (!__syncthreads_and(same)) {
    for (int first = warp * kMany; first < size; first += kWarps * kMany) {
      const int some = min(kMany, size - first);
      sort_some<32>(held + first, some, stage, 0);
      for (int i = lane; i < some; i += 32) held[first + i] = stage[padded(i)];
      __syncwarp();
    }
    __syncthreads();
    for (int width = kMany; width < size; width *= 2) {
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

// Sorts the share of a block, whose keys are to lie in ``keys``, by their place in the row.
__device__ __forceinline__ void sort_share(
    Shared& s, u32* row, const u32* values, const u16* cells, int size, int rank, u32* keys, bool alone, u32* stages) {
  scatter(s, values, cells, size, keys, alone);
  sync_cluster();
  const int first = s.bounds[rank], last = s.bounds[rank + 1];
  sort_cells(s, first, last, keys, row, stages);
  __syncthreads();
  for (int cell = first; s.large && cell < last; ++cell) {
    const int begin = s.begins[cell], many = (int)s.begins[cell + 1] - begin;
    if (many > kMany) merge_cell(keys + begin, row + begin, many, stages);
  }
  __syncthreads();
}

// Every cluster takes one row after another. Shared memory holds ``capacity`` values of a block, then its notes: the
// sample; with ``inside``, the cells of the values that it read; then what its warps stage. What does not fit is in
// ``spares``: all values, where cells are so large that those of a block might not fit, and the cells of these.
extern "C" __global__ void __launch_bounds__(kThreads, RESIDENT)
    sort_rows(u32* rows, u32* spares, int count, int n, int capacity, int inside) {
  __shared__ Shared s;
  extern __shared__ u32 held[];
  u32* const notes = held + capacity;
  const int rank = rank_in_cluster(), cluster = blockIdx.x / kBlocks;
  const int share = (n + kBlocks - 1) / kBlocks, from = min(n, rank * share), size = min(n, from + share) - from;
  u32* const spare = spares + (long long)cluster * (n + (n + 1) / 2);
  u16* const cells = (u16*)(inside ? notes : spare + n);
  for (int line = cluster; line < count; line += gridDim.x / kBlocks) {
    u32* const row = rows + (long long)line * n;
    for (int i = threadIdx.x; i < kAllCells; i += kThreads) s.counts[i] = 0;
    if (threadIdx.x == 0) s.large = 0;
    find_edges(s, notes, row, n);
    count_cells(s, row + from, cells, size);
    sync_cluster();
    const int largest = place_cells(s, n, rank);
    const bool beyond = __syncthreads_or((kBlocks == 1 ? n : min(n, share + largest)) > capacity);
    if (threadIdx.x <= kBlocks)
      s.bounds[threadIdx.x] = threadIdx.x < kBlocks ? first_from(s, 0, kAllCells, threadIdx.x * share) : kAllCells;
    __syncthreads();
    if (threadIdx.x < kBlocks) s.homes[threadIdx.x] = in_block(held, threadIdx.x) - s.begins[s.bounds[threadIdx.x]];
    __syncthreads();
    if (beyond)
      sort_share(s, row, row + from, cells, size, rank, spare, true, notes);
    else
      sort_share(s, row, row + from, cells, size, rank, held - s.begins[s.bounds[rank]], kBlocks == 1, notes);
  }
}
