// Stands in for Taskflow's header in the tests of the suite `graph`, which have to compile the
// suite's program where Taskflow is not installed. Tasks are called in the order in which they were
// made; nothing is measured with it.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace tf {

class Task {
public:
    void precede(Task&) {}
};

class Taskflow {
public:
    Task emplace(std::function<void()> call) {
        calls.push_back(std::move(call));
        return {};
    }

    std::vector<std::function<void()>> calls;
};

struct Done {
    void wait() {}
};

class Executor {
public:
    explicit Executor(std::size_t) {}

    Done run_n(Taskflow& flow, std::size_t n) {
        for (std::size_t index = 0; index < n; ++index) {
            for (auto& call : flow.calls) {
                call();
            }
        }
        return {};
    }
};

}  // namespace tf
