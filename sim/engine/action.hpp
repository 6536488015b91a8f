// What an event does: a small callable kept inside the event, with no heap behind it.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

namespace tpusim::engine {

// Holds any trivially copyable callable of at most 24 bytes (an object pointer and two numbers). Larger state belongs
// into an object that the callable points to, which must outlive the event.
class Action {
 public:
  Action() = default;  // does nothing
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Action>>>
  Action(F f) {  // NOLINT: implicit on purpose, like std::function
    static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>,
                  "capture pointers and numbers only");
    static_assert(sizeof(F) <= kSize, "capture at most 24 bytes");
    static_assert(alignof(F) <= 8, "the storage is aligned to 8 bytes");
    ::new (static_cast<void*>(storage_)) F(f);
    call_ = [](void* p) { (*std::launder(reinterpret_cast<F*>(p)))(); };
  }
  void operator()() {
    if (call_ != nullptr) call_(storage_);
  }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  static constexpr std::size_t kSize = 24;
  void (*call_)(void*) = nullptr;
  alignas(8) unsigned char storage_[kSize] = {};
};

}  // namespace tpusim::engine
