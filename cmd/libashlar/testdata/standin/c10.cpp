#include "c10.h"

namespace c10 {

std::atomic<long> errors_made{0};
std::atomic<long> errors_gone{0};

Error::Error(SourceLocation location, std::string text)
    : text_(std::move(text)),
      context_{"a context that is too long to be stored in the string object itself"},
      backtrace_(std::make_shared<const std::string>(std::string(location.function) + " in " + location.file)),
      without_backtrace_(text_) {
  errors_made++;
}

Error::~Error() {
  delete what_.load();
  errors_gone++;
}

// The whole text is made when somebody asks, and belongs to the object.
const char *Error::what() const noexcept {
  std::string *made = what_.load();
  if (made == nullptr) {
    made = new std::string(text_ + "\n" + context_[0] + "\nin " + *backtrace_);
    what_.store(made);
  }
  return made->c_str();
}

const char *Error::what_without_backtrace() const noexcept { return without_backtrace_.c_str(); }

}  // namespace c10
