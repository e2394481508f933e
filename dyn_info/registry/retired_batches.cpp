#include "jitunwind/dyn_info/registry/take_out_p.h"

namespace jitunwind {

namespace {

constexpr std::uint64_t stacked(std::uint64_t old_top, BatchId id) { return ((old_top >> 32) + 1) << 32 | id; }

}  // namespace

BatchId RetiredBatches::take() noexcept {
  std::uint64_t top = free_.load(std::memory_order_acquire);
  while (static_cast<BatchId>(top) != 0) {
    const auto id = static_cast<BatchId>(top);
    const BatchId next = (*this)[id].next.load(std::memory_order_relaxed);
    if (free_.compare_exchange_weak(top, stacked(top, next), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return id;
    }
  }
  BatchId id = fresh_.load(std::memory_order_relaxed);
  do {
    if (!records_.make(id - 1)) return 0;
  } while (!fresh_.compare_exchange_weak(id, id + 1, std::memory_order_acq_rel));
  return id;
}

void RetiredBatches::give_back(BatchId id) noexcept {
  RetiredBatch& batch = (*this)[id];
  batch.serial.fetch_add(1, std::memory_order_release);
  std::uint64_t top = free_.load(std::memory_order_relaxed);
  do {
    batch.next.store(static_cast<BatchId>(top), std::memory_order_relaxed);
  } while (!free_.compare_exchange_weak(top, stacked(top, id), std::memory_order_acq_rel, std::memory_order_relaxed));
}

void RetiredBatches::push_pending(BatchId id) noexcept {
  BatchId top = pending_.load(std::memory_order_relaxed);
  do {
    (*this)[id].next.store(top, std::memory_order_relaxed);
  } while (!pending_.compare_exchange_weak(top, id, std::memory_order_seq_cst, std::memory_order_relaxed));
}

void RetiredBatches::add_waiting(BatchId id) noexcept {
  RetiredBatch& batch = (*this)[id];
  batch.previous = last_waiting_;
  batch.next.store(0, std::memory_order_relaxed);
  if (last_waiting_ != 0) {
    (*this)[last_waiting_].next.store(id, std::memory_order_relaxed);
  } else {
    first_waiting_.store(id, std::memory_order_relaxed);
  }
  last_waiting_ = id;
}

void RetiredBatches::remove_waiting(BatchId id) noexcept {
  RetiredBatch& batch = (*this)[id];
  const BatchId next = batch.next.load(std::memory_order_relaxed);
  if (batch.previous != 0) {
    (*this)[batch.previous].next.store(next, std::memory_order_relaxed);
  } else {
    first_waiting_.store(next, std::memory_order_relaxed);
  }
  if (next != 0) {
    (*this)[next].previous = batch.previous;
  } else {
    last_waiting_ = batch.previous;
  }
}

}  // namespace jitunwind
