// Functions of another file that take and give the header's types.
#ifndef TEST_CPP_TWICE_HPP
#define TEST_CPP_TWICE_HPP

#include <redlock/redlock.hpp>

std::string message_of(const redlock::error &error);
redlock::lease through(redlock::lease &&lease);

#endif
