#include "sampling/file_budget.h"

#include "support/catch2.h"

using sentry_prof::sampling::FileBudget;

TEST_CASE("What is open, and what the program needs besides, is not there for events") {
  CHECK(FileBudget(1000, 0).events() == 1000 - FileBudget::kReserved);
  CHECK(FileBudget(1000, 200).events() == 800 - FileBudget::kReserved);
  CHECK(FileBudget(100, 20).events() == 55);  // of a small limit a quarter
  CHECK(FileBudget(100, 80).events() == 0);
}

TEST_CASE("The limit that is asked for is enough, and none smaller") {
  for (const uint64_t open : {0, 20, 500}) {
    for (uint64_t events = 1; events < 3000; events += 7) {
      const uint64_t limit = FileBudget(64, open).limit_for(events);
      CHECK(FileBudget(limit, open).events() >= events);
      CHECK(FileBudget(limit - 1, open).events() < events);
    }
  }
}
