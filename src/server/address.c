/* Parses node URIs. */
#include "server/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include <redlock/redlock.h>

#include "core/number.h"

#define PORT_DEFAULT  6379
#define DB_MAX        65535
#define HOST_SIZE_MAX 255
#define HOST_BYTES    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_"

/* A piece of the URI. */
struct span {
    const char *bytes;
    size_t size;
};

static bool take_prefix(struct span *rest, const char *prefix) {
    size_t size = strlen(prefix);
    if (rest->size < size || memcmp(rest->bytes, prefix, size) != 0) {
        return false;
    }
    rest->bytes += size;
    rest->size -= size;
    return true;
}

static struct span until(struct span *rest, const char *stops) {
    struct span taken = {rest->bytes, 0};
    while (taken.size < rest->size && strchr(stops, rest->bytes[taken.size]) == NULL) {
        taken.size++;
    }
    rest->bytes += taken.size;
    rest->size -= taken.size;
    return taken;
}

static char *copy(struct span span) {
    char *text = malloc(span.size + 1);
    if (text != NULL) {
        memcpy(text, span.bytes, span.size);
        text[span.size] = '\0';
    }
    return text;
}

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *digit = memchr(digits, tolower((unsigned char)c), 16);
    return digit == NULL ? -1 : (int)(digit - digits);
}

/* Errors name the parts of a URI that may be secret. They never quote them. */
static int percent_decode(struct span span, const char *part, char **decoded, struct redlock_error_text *failure) {
    assert(*decoded == NULL);
    char *text = copy(span);
    if (text == NULL) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    *decoded = text; /* the address owns it from here on */
    size_t length = 0;
    for (size_t i = 0; i < span.size; i++) {
        if (span.bytes[i] != '%') {
            text[length++] = span.bytes[i];
            continue;
        }
        int high = i + 2 < span.size ? hex_digit(span.bytes[i + 1]) : -1;
        int low = i + 2 < span.size ? hex_digit(span.bytes[i + 2]) : -1;
        if (high < 0 || low < 0) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID,
                                "the %s of a node URI has a '%%' without two hexadecimal digits: write %%25 for a '%%'",
                                part);
        }
        if (high + low == 0) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID, "the %s of a node URI has a zero byte, %%00", part);
        }
        text[length++] = (char)(high * 16 + low);
        i += 2;
    }
    text[length] = '\0';
    return REDLOCK_OK;
}

/* Reads decimal digits only, at most `max`. */
static bool number(struct span span, uint32_t max, uint32_t *value) {
    uint64_t sum = 0;
    const bool is_read = span.size <= 9 && redlock_number_read(span.bytes, span.size, max, &sum);
    *value = (uint32_t)sum;
    return is_read;
}

static int parse_db(struct span span, const char *hint, struct redlock_address *address,
                    struct redlock_error_text *failure) {
    assert(address->host != NULL);
    if (!number(span, DB_MAX, &address->db)) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "the database of node '%s' is not a number from 0 to %d%s",
                            address->host, DB_MAX, hint);
    }
    return REDLOCK_OK;
}

static int parse_user_info(struct span user_info, struct redlock_address *address, struct redlock_error_text *failure) {
    struct span user = until(&user_info, ":");
    int code = REDLOCK_OK;
    bool password = take_prefix(&user_info, ":") && user_info.size > 0;
    if (user.size == 0 && !password) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "a node URI has '@' without user or password: write :PASSWORD@ or USER:PASSWORD@");
    }
    if (user.size > 0) {
        code = percent_decode(user, "user", &address->credentials.user, failure);
    }
    if (code == REDLOCK_OK && password) {
        code = percent_decode(user_info, "password", &address->credentials.password, failure);
    }
    return code;
}

static int parse_host(struct span *rest, struct redlock_address *address, bool *literal,
                      struct redlock_error_text *failure) {
    assert(address->host == NULL);
    *literal = take_prefix(rest, "[");
    struct span host = until(rest, *literal ? "]/?#" : ":/?#");
    int shown = (int)(host.size < 64 ? host.size : 64);
    if (*literal && !take_prefix(rest, "]")) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "the address '[%.*s' of a node URI has no closing ']'", shown,
                            host.bytes);
    }
    if (host.size == 0) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "the host of a node URI is empty%s",
                            !*literal && rest->size > 1 && memchr(rest->bytes + 1, ':', rest->size - 1) != NULL
                                ? "; an IPv6 address needs brackets: [::1]:6379"
                                : "");
    }
    if (host.size > HOST_SIZE_MAX) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "the host of a node URI is longer than %d bytes",
                            HOST_SIZE_MAX);
    }
    address->host = copy(host);
    if (address->host == NULL) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    const size_t fitting = strspn(address->host, *literal ? HOST_BYTES ":%" : HOST_BYTES);
    if (fitting < host.size) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "the host of a node URI has a byte at position %zu that no host name has", fitting + 1);
    }
    return REDLOCK_OK;
}

/* Why the text behind the first ':' of a host may be no port. */
static const char *port_hint(const struct redlock_address *address, struct span port, bool may_be_password) {
    for (size_t i = 0; i < port.size; i++) {
        if ((unsigned char)port.bytes[i] > 0x7f) {
            return "; it has a character that is not ASCII";
        }
    }
    if (may_be_password && port.size > 0) {
        return "; after USER:PASSWORD comes '@'";
    }
    if (memchr(port.bytes, ':', port.size) == NULL) {
        return "";
    }
    return strspn(address->host, "0123456789abcdefABCDEF") == strlen(address->host)
               ? "; an IPv6 address needs brackets"
               : "; only one ':' may follow the host";
}

/* With a scheme, the first of two ':' may stand between a user and a password. */
static int parse_port(struct span *rest, bool has_user, bool bare, struct redlock_address *address,
                      struct redlock_error_text *failure) {
    assert(address->host != NULL);
    address->port = PORT_DEFAULT;
    if (!take_prefix(rest, ":")) {
        return REDLOCK_OK;
    }
    struct span port = until(rest, "/?#");
    uint32_t value = 0;
    if (!number(port, UINT16_MAX, &value) || value == 0) {
        /* Do not quote it: it may be a password without its '@HOST'. */
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "the port of node '%s' is not a number from 1 to 65535%s",
                            address->host, port_hint(address, port, !has_user && !bare));
    }
    address->port = (uint16_t)value;
    return REDLOCK_OK;
}

/* An IPv6 address, and perhaps a zone: fe80::1%eth0. */
static bool is_ipv6(const char *host) {
    char plain[INET6_ADDRSTRLEN] = "";
    struct in6_addr room;
    const char *zone = strchr(host, '%');
    const size_t size = zone != NULL ? (size_t)(zone - host) : strlen(host);
    if (size >= sizeof plain || (zone != NULL && zone[1 + strcspn(zone + 1, "%:")] != '\0') ||
        (zone != NULL && zone[1] == '\0')) {
        return false;
    }
    memcpy(plain, host, size);
    return inet_pton(AF_INET6, plain, &room) == 1;
}

/* The resolver would take "1.2.3" for 1.2.0.3, and 010 for 8: two URIs could be one node. */
static bool is_odd_ipv4(const char *host) {
    struct in_addr room;
    const bool is_number = host[strspn(host, "0123456789.")] == '\0' || inet_aton(host, &room) != 0;
    return is_number && inet_pton(AF_INET, host, &room) != 1;
}

static int check_number(const char *host, bool literal, struct redlock_error_text *failure) {
    if (literal && !is_ipv6(host)) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "'[%.64s]' in a node URI is not an IPv6 address", host);
    }
    if (!literal && is_odd_ipv4(host)) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "'%.64s' in a node URI is no IPv4 address: write four numbers from 0 to 255, without "
                            "leading zeros",
                            host);
    }
    return REDLOCK_OK;
}

/* [user[:password]@]host[:port][/db] */
static int parse_tcp(struct span rest, bool bare, struct redlock_address *address, struct redlock_error_text *failure) {
    const char *at = memrchr(rest.bytes, '@', rest.size);
    int code = REDLOCK_OK;
    bool literal = false;
    address->kind = REDLOCK_ADDRESS_TCP;
    if (at != NULL) {
        struct span user_info = {rest.bytes, (size_t)(at - rest.bytes)};
        rest.size -= user_info.size + 1;
        rest.bytes = at + 1;
        if (bare) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID,
                                "a node with user or password needs a scheme: redis://USER:PASSWORD@HOST:PORT");
        }
        code = parse_user_info(user_info, address, failure);
    }
    if (code == REDLOCK_OK) {
        code = parse_host(&rest, address, &literal, failure);
    }
    if (code == REDLOCK_OK) {
        code = parse_port(&rest, at != NULL, bare, address, failure);
    }
    if (code == REDLOCK_OK) {
        code = check_number(address->host, literal, failure);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    if (take_prefix(&rest, "/") && rest.size > 0) {
        code = parse_db(until(&rest, "?#"), bare ? "; a socket is written unix:///path" : "", address, failure);
        if (code != REDLOCK_OK) {
            return code;
        }
    }
    if (rest.size > 0) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "node '%s': only :PORT and /DB may follow the host",
                            address->host);
    }
    size_t size = strlen(address->host) + 10;
    address->name = malloc(size);
    if (address->name == NULL) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    (void)snprintf(address->name, size, literal ? "[%s]:%u" : "%s:%u", address->host, (unsigned)address->port);
    return REDLOCK_OK;
}

/* /path[?db=n] */
static int parse_unix(struct span rest, struct redlock_address *address, struct redlock_error_text *failure) {
    struct sockaddr_un room;
    int code = REDLOCK_OK;
    address->kind = REDLOCK_ADDRESS_UNIX;
    struct span path = until(&rest, "?");
    if (path.size == 0 || path.bytes[0] != '/') {
        if (memchr(path.bytes, '@', path.size) != NULL) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID, "the URI of a socket has no place for user and password");
        }
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "a socket needs an absolute path: unix:///path");
    }
    code = percent_decode(path, "path", &address->host, failure);
    if (code != REDLOCK_OK) {
        return code;
    }
    for (const char *c = address->host; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID, "the socket path of a node URI has a control character");
        }
    }
    if (strlen(address->host) >= sizeof room.sun_path) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "the socket path '%.32s…' is longer than %zu bytes",
                            address->host, sizeof room.sun_path - 1);
    }
    if (take_prefix(&rest, "?")) {
        if (!take_prefix(&rest, "db=")) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID, "only ?db=N may follow the path of the socket '%s'",
                                address->host);
        }
        code = parse_db(rest, "", address, failure);
    }
    if (code == REDLOCK_OK) {
        address->name = strdup(address->host);
        if (address->name == NULL) {
            code = REDLOCK_ERR_NO_MEMORY;
        }
    }
    return code;
}

static const char *const schemes[] = {"redis://", "rediss://", "unix://"};

/* "redis//a" and "unix:/a" are no host with a database or a port; "redis:6379" is. */
static bool lacks_slashes(struct span uri, struct span *scheme) {
    *scheme = until(&uri, ":/");
    if (uri.size < 2 || memcmp(uri.bytes, "://", uri.size < 3 ? uri.size : 3) == 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (scheme->size == strlen(schemes[i]) - strlen("://") &&
            strncasecmp(scheme->bytes, schemes[i], scheme->size) == 0) {
            const size_t digits = strspn(uri.bytes + 1, "0123456789");
            return digits == 0 || strchr("/?#", uri.bytes[1 + digits]) == NULL;
        }
    }
    return false;
}

static int parse_bare(struct span uri, struct redlock_address *address, struct redlock_error_text *failure) {
    assert(uri.size > 0);
    struct span scheme;
    if (uri.bytes[0] == '/') {
        return redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "a node URI begins with '/': write unix:///path for a socket, or HOST:PORT");
    }
    if (lacks_slashes(uri, &scheme)) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "the scheme '%.*s' of a node URI is not followed by '://'",
                            (int)scheme.size, scheme.bytes);
    }
    if (memmem(uri.bytes, uri.size, "://", 3) != NULL) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "the scheme of a node URI is unknown: use redis://, rediss:// or unix://, in lower case, "
                            "or HOST:PORT");
    }
    return parse_tcp(uri, true, address, failure);
}

/* Two nodes in one URI would be one node less, with a strange password. */
static int check_bytes(struct span uri, struct redlock_error_text *failure) {
    if (uri.size == 0) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "a node URI is empty");
    }
    for (size_t i = 0; i < uri.size; i++) {
        if ((unsigned char)uri.bytes[i] <= ' ' || uri.bytes[i] == 0x7f) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID,
                                "a node URI has a space or a control character at position %zu", i + 1);
        }
    }
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (memmem(uri.bytes + 1, uri.size - 1, schemes[i], strlen(schemes[i])) != NULL) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID,
                                "a node URI has a second '%s' inside: separate two nodes, or write %%3A for its ':'",
                                schemes[i]);
        }
    }
    return REDLOCK_OK;
}

static int parse(struct span rest, struct redlock_address *address, struct redlock_error_text *failure) {
    const int code = check_bytes(rest, failure);
    if (code != REDLOCK_OK) {
        return code;
    }
    if (take_prefix(&rest, "redis://")) {
        return parse_tcp(rest, false, address, failure);
    }
    if (take_prefix(&rest, "unix://")) {
        return parse_unix(rest, address, failure);
    }
    if (take_prefix(&rest, "rediss://")) {
        address->tls = true;
        return parse_tcp(rest, false, address, failure);
    }
    return parse_bare(rest, address, failure);
}

int redlock_address_parse(const char *uri, struct redlock_address *address, struct redlock_error_text *failure) {
    *address = (struct redlock_address){.kind = REDLOCK_ADDRESS_TCP};
    int code = parse((struct span){uri, strlen(uri)}, address, failure);
    if (code == REDLOCK_ERR_NO_MEMORY) {
        (void)redlock_fail(failure, code, "no memory for a node's address");
    }
    if (code != REDLOCK_OK) {
        redlock_address_clear(address);
    }
    return code;
}

/* Skips slashes, and folders named ".", up to the next name. */
static const char *next_name(const char *path) {
    for (;;) {
        path += strspn(path, "/");
        if (path[0] != '.' || (path[1] != '/' && path[1] != '\0')) {
            return path;
        }
        path++;
    }
}

static bool is_same_path(const char *path, const char *other) {
    for (;;) {
        path = next_name(path);
        other = next_name(other);
        const size_t size = strcspn(path, "/");
        if (size != strcspn(other, "/") || memcmp(path, other, size) != 0) {
            return false;
        }
        if (size == 0) {
            return true;
        }
        path += size;
        other += size;
    }
}

/* Reads "1.2.3.4:port" or "[1:2::3%zone]:port". An IPv4 address becomes the IPv6 address that leads
 * to it. Sets `rest` to the zone and the port. Returns false for a host name. */
static bool read_ip(const char *name, struct in6_addr *ip, const char **rest) {
    char text[INET6_ADDRSTRLEN] = "::ffff:";
    const bool is_v6 = name[0] == '[';
    const size_t used = is_v6 ? 0 : strlen(text), size = strcspn(name + is_v6, is_v6 ? "%]" : ":");
    if (used + size >= sizeof text) {
        return false;
    }
    memcpy(text + used, name + is_v6, size);
    text[used + size] = '\0';
    *rest = name + is_v6 + size;
    *rest += is_v6 && **rest == ']';
    return inet_pton(AF_INET6, text, ip) == 1;
}

bool redlock_address_is_same(const char *name, const char *other) {
    struct in6_addr ip, other_ip;
    const char *rest, *other_rest;
    if (name[0] == '/' && other[0] == '/') {
        return is_same_path(name, other);
    }
    if (read_ip(name, &ip, &rest) && read_ip(other, &other_ip, &other_rest)) {
        return memcmp(&ip, &other_ip, sizeof ip) == 0 && strcmp(rest, other_rest) == 0;
    }
    return strcasecmp(name, other) == 0;
}

void redlock_address_clear(struct redlock_address *address) {
    free(address->name);
    free(address->host);
    redlock_credentials_clear(&address->credentials);
    *address = (struct redlock_address){.kind = REDLOCK_ADDRESS_TCP};
}
