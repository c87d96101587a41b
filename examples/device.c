/* A device in C: cc -O2 -o device device.c && ./device 9095. Put your hardware into measure() and act(). */
#include <arpa/inet.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { HELLO = 1, CONTRACT, SENSOR, COMMAND, BUSY, BYE, IN = 1, OUT = 4, STEP = 2000000, WATCHDOG = 3 };
struct __attribute__((packed)) head { char magic[4]; uint8_t version, kind, flags, count; uint32_t seq, echo; uint64_t time; };
static const char about[] = "{\"format\": 1, \"platform\": \"cart-pole-swing-up\", \"dt\": 0.002, \"watchdog\": 0.006, \"safe\": [0.0],"
  "\"observations\": [[\"x\", \"m\", -0.357, 0.357], [\"alpha_error\", \"rad\", -3.1416, 3.1416], [\"x_dot\", \"m/s\", -2.0, 2.0],"
  "[\"alpha_dot\", \"rad/s\", -25.0, 25.0]], \"actions\": [[\"V\", \"V\", -8.0, 8.0]]}";
static float x, v, volts;
static void measure(float *o) { o[0] = x; o[1] = 3.1416f; o[2] = v; o[3] = 0; }
static void act(float u) { volts = u; v += 0.002f * (1.4f * volts - 12 * v); x += 0.002f * v; }

static uint32_t crc(const uint8_t *data, size_t n) {
  uint32_t c = ~0u;
  while (n--) { c ^= *data++; for (int i = 0; i < 8; i++) c = c >> 1 ^ (0xedb88320u & -(c & 1)); }
  return ~c;
}
static size_t sealed(uint8_t *b, int kind, int count, int flags, uint32_t seq, uint32_t echo, uint64_t now, const void *body, size_t n) {
  struct head h = { {'S', 'P', 'T', 'A'}, 1, (uint8_t)kind, (uint8_t)flags, (uint8_t)count, seq, echo, now };
  memcpy(b, &h, sizeof h);
  memcpy(b + sizeof h, body, n);
  uint32_t sum = crc(b, sizeof h + n);
  memcpy(b + sizeof h + n, &sum, 4);
  return sizeof h + n + 4;
}
static int whole(const uint8_t *b, long n, struct head *h) {
  uint32_t sum;
  if (n < 28) return 0;
  memcpy(h, b, sizeof *h);
  memcpy(&sum, b + n - 4, 4);
  return !memcmp(h->magic, "SPTA", 4) && h->version == 1 && sum == crc(b, (size_t)n - 4);
}
int main(int argc, char **argv) {
  struct sockaddr_in me = { .sin_family = AF_INET, .sin_port = htons(argc > 1 ? atoi(argv[1]) : 9095), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  struct sockaddr_in from, host = {0};
  int s = socket(AF_INET, SOCK_DGRAM, 0), heard = 0, any = 0;
  uint32_t seq = 0, last = 0;
  struct timespec t;
  struct head h;
  uint8_t b[1500];
  float u = 0, o[OUT];
  if (bind(s, (struct sockaddr *)&me, sizeof me)) return 1;
  for (clock_gettime(CLOCK_MONOTONIC, &t);; clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0)) {
    t.tv_nsec += STEP; if (t.tv_nsec >= 1000000000) { t.tv_nsec -= 1000000000; t.tv_sec++; }
    uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    socklen_t size = sizeof from;
    for (long n; heard++, (n = recvfrom(s, b, sizeof b, MSG_DONTWAIT, (struct sockaddr *)&from, &size)) > 0; heard--) {
      int ours = from.sin_port == host.sin_port && from.sin_addr.s_addr == host.sin_addr.s_addr;
      if (!whole(b, n, &h)) continue;
      if (h.kind == HELLO) {
        int kind = host.sin_port && !ours && heard < 500 ? BUSY : CONTRACT;
        if (kind == CONTRACT) { host = from; any = 0; u = 0; heard = 1; }
        sendto(s, b, sealed(b, kind, 0, 0, 0, 0, 0, about, kind == CONTRACT ? strlen(about) : 0), 0, (struct sockaddr *)&from, size);
      } else if (ours && h.kind == COMMAND && h.count == IN && n == 28 + 4 * IN && (!any || (int32_t)(h.seq - last) > 0)) {
        float given;
        memcpy(&given, b + 24, 4);
        if (isfinite(given)) { u = fmaxf(-8, fminf(8, given)); last = h.seq; any = 1; heard = 1; }
      } else if (ours && h.kind == BYE) { host.sin_port = 0; u = 0; }
    }
    if (heard > WATCHDOG) u = 0;
    act(u);
    measure(o);
    if (host.sin_port) sendto(s, b, sealed(b, SENSOR, OUT, heard > WATCHDOG, ++seq, last, now, o, sizeof o), 0, (struct sockaddr *)&host, sizeof host);
  }
}
