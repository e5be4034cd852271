// A second file of the same program that includes the header.
#include "twice.hpp"

std::string message_of(const redlock::error &error) {
    return error.message();
}

redlock::lease through(redlock::lease &&lease) {
    return std::move(lease);
}
