/* Addresses. */
#include "address.h"
