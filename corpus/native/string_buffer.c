// `append` asks another buffer for its length and then for its characters. In between, the other
// buffer gets shorter. Shape: stringbuffer of JDK 1.4, SCTBench.
#include <assert.h>
#include <pthread.h>
#include <string.h>
struct buffer {
    pthread_mutex_t lock;
    int length;
    char text[16];
};
static struct buffer one = {PTHREAD_MUTEX_INITIALIZER, 3, "abc"};
static struct buffer two = {PTHREAD_MUTEX_INITIALIZER, 0, ""};
static int length(struct buffer *buffer) {
    pthread_mutex_lock(&buffer->lock);
    int length = buffer->length;
    pthread_mutex_unlock(&buffer->lock);
    return length;
}
static void get(struct buffer *from, int end, char *to) {
    pthread_mutex_lock(&from->lock);
    assert(end <= from->length);
    memcpy(to, from->text, end);
    pthread_mutex_unlock(&from->lock);
}
static void *append(void *arg) {
    pthread_mutex_lock(&two.lock);
#ifdef HOLDS_BOTH
    pthread_mutex_lock(&one.lock);
    memcpy(two.text + two.length, one.text, one.length);
    two.length += one.length;
    pthread_mutex_unlock(&one.lock);
    (void)length, (void)get;
#else
    int more = length(&one);
    get(&one, more, two.text + two.length);
    two.length += more;
#endif
    pthread_mutex_unlock(&two.lock);
    return arg;
}
static void *erase(void *arg) {
    pthread_mutex_lock(&one.lock);
    one.length = 0;
    pthread_mutex_unlock(&one.lock);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, append, 0);
    pthread_create(&u, 0, erase, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
