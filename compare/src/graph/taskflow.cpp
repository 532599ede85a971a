// Runs a graph as a taskflow repeatedly. The suite `graph` compiles and calls this program if the
// header is installed:
//
//     taskflow THREADS WARM_UP EPOCHS NODE...
//
// A node is `source:`, `mixN:I` or `sink:I,J,..`, and reads the nodes of these numbers. The program
// prints the sum of all sinks, and the nanoseconds of CPU time and of wall time of the measured
// epochs.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <taskflow/taskflow.hpp>

namespace {

// One cache line each, against false sharing.
struct alignas(64) Node {
    std::uint64_t value = 0;
    std::uint64_t sum = 0;
    std::vector<const std::uint64_t*> inputs;
};

std::uint64_t mix(std::uint64_t x) {
    return (x ^ (x >> 29)) * 0x9e3779b97f4a7c15ull + 0x2545f491ull;
}

std::uint64_t cpu_ns() {
    timespec spent{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return std::uint64_t(spent.tv_sec) * 1000000000ull + std::uint64_t(spent.tv_nsec);
}

tf::Task add(tf::Taskflow& flow, Node& node, const std::string& kind) {
    if (kind == "source") {
        return flow.emplace([&node] { node.value += 1; });
    }
    if (kind == "sink") {
        return flow.emplace([&node] {
            for (const std::uint64_t* input : node.inputs) {
                node.sum += *input;
            }
        });
    }
    const unsigned long turns = std::strtoul(kind.c_str() + 3, nullptr, 10);
    return flow.emplace([&node, turns] {
        std::uint64_t x = *node.inputs[0];
        for (unsigned long turn = 0; turn < turns; ++turn) {
            x = mix(x);
        }
        node.value = x;
    });
}

}  // namespace

int main(int count, char** words) {
    if (count < 5) {
        std::fprintf(stderr, "threads, epochs and nodes are missing\n");
        return 2;
    }
    const std::size_t threads = std::strtoul(words[1], nullptr, 10);
    const std::size_t warm_up = std::strtoul(words[2], nullptr, 10);
    const std::size_t epochs = std::strtoul(words[3], nullptr, 10);

    tf::Taskflow flow;
    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<tf::Task> tasks;
    for (int index = 4; index < count; ++index) {
        const std::string word = words[index];
        const std::size_t colon = word.find(':');
        nodes.push_back(std::make_unique<Node>());
        Node& node = *nodes.back();
        tf::Task task = add(flow, node, word.substr(0, colon));
        const char* rest = word.c_str() + colon + 1;
        while (*rest != '\0') {
            char* end = nullptr;
            const std::size_t from = std::strtoul(rest, &end, 10);
            node.inputs.push_back(&nodes[from]->value);
            tasks[from].precede(task);
            rest = *end == ',' ? end + 1 : end;
        }
        tasks.push_back(task);
    }

    tf::Executor executor(threads);
    executor.run_n(flow, warm_up).wait();
    const auto wall = std::chrono::steady_clock::now();
    const std::uint64_t cpu = cpu_ns();
    executor.run_n(flow, epochs).wait();
    const std::uint64_t cpu_spent = cpu_ns() - cpu;
    const auto wall_spent = std::chrono::steady_clock::now() - wall;
    // One more epoch after the last measured one, as for every other subject.
    executor.run_n(flow, 1).wait();

    std::uint64_t total = 0;
    for (const auto& node : nodes) {
        total += node->sum;
    }
    const auto wall_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(wall_spent).count();
    std::printf("%llu %llu %llu\n", (unsigned long long)total, (unsigned long long)cpu_spent,
                (unsigned long long)wall_ns);
    return 0;
}
