/* Counts the words of texts, many documents in one pass. `words.py` declares these functions to Python; text/counting.py
 * calls them, and has the same in Python for machines without a compiler and for other rules.
 *
 * Plain C without Python's headers. The bytes of document d are text[starts[d]] .. text[starts[d + 1] - 1]; its last
 * character is a space. Its entries come after those of the documents before it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED
#endif

#define NO_MEMORY (-1)
#define FIRST_SLOTS (1 << 14)
#define BYTES 256

/* Documents: words between spaces in UTF-8; runs of ASCII letters; or UTF-32, with a table of characters */
enum { SPLIT, ASCII, UNICODE };

/* Characters of the table: 0 if it ends a word, otherwise what it becomes; a mark does not start a word */
#define MARK 0x80000000u
#define INVISIBLE 0x40000000u  /* within words, and not counted */
#define RARE 0x20000000u  /* a text with it is split in Python, as are texts with characters beyond the table */
#define CODE 0x1fffffu

typedef struct {
    uint64_t hash;
    int64_t start, length;  /* its letters among those of all words */
    int64_t document;  /* the last that has it */
    int64_t entry;  /* its entry there */
} Word;

typedef struct {
    uint32_t check;  /* the upper half of the hash, so that few different words are compared */
    int32_t word;  /* -1: empty */
} Slot;

typedef struct {
    Word *words;
    Slot *slots;
    int64_t number, capacity;  /* of words */
    uint64_t mask;  /* slots - 1; there are at least twice as many as words */
} Table;

/* Makes room for twice as many words; false if there is no memory */
static int grow(Table *table) {
    int64_t slots = table->slots ? 2 * ((int64_t)table->mask + 1) : FIRST_SLOTS;
    Word *words = realloc(table->words, sizeof(Word) * (size_t)(slots / 2));
    if (!words) return 0;
    table->words = words;
    Slot *fresh = malloc(sizeof(Slot) * (size_t)slots);
    if (!fresh) return 0;
    free(table->slots);
    table->slots = fresh;
    table->capacity = slots / 2;
    table->mask = (uint64_t)slots - 1;
    memset(fresh, 0xff, sizeof(Slot) * (size_t)slots);
    for (int64_t w = 0; w < table->number; w++) {
        uint64_t place = words[w].hash & table->mask;
        while (fresh[place].word >= 0) place = (place + 1) & table->mask;
        fresh[place].check = (uint32_t)(words[w].hash >> 32);
        fresh[place].word = (int32_t)w;
    }
    return 1;
}

/* The word with these letters, which lie behind those of all known words; a new one is added to them.
 * NULL if there is no memory. */
static inline Word *find(Table *table, const uint8_t *letters, int64_t start, int64_t length, uint64_t hash) {
    uint32_t check = (uint32_t)(hash >> 32);
    uint64_t place = hash & table->mask;
    for (Slot slot; (slot = table->slots[place]).word >= 0; place = (place + 1) & table->mask) {
        Word *word = table->words + slot.word;
        if (slot.check == check && word->length == length && !memcmp(letters + word->start, letters + start, (size_t)length))
            return word;
    }
    if (table->number == table->capacity) {
        if (!grow(table)) return NULL;
        return find(table, letters, start, length, hash);
    }
    table->slots[place].check = check;
    table->slots[place].word = (int32_t)table->number;
    Word *word = table->words + table->number++;
    word->hash = hash;
    word->start = start;
    word->length = length;
    word->document = -1;
    return word;
}

static inline uint64_t hashed(uint64_t hash, uint8_t letter) { return (hash ^ letter) * 0x9E3779B97F4A7C15u; }

/* A run of letters: its place in the text is moved behind it and the character that ends it */
typedef struct {
    uint64_t hash;
    int64_t bytes, characters;
} Run;

static inline Run run_of_bytes(const uint8_t *text, int64_t *place, const uint8_t *kept, uint8_t *letters) {
    Run run = {0};
    for (uint8_t letter; (letter = kept[text[*place]]); ++*place) {
        letters[run.bytes++] = letter;
        run.hash = hashed(run.hash, letter);
    }
    ++*place;
    run.characters = run.bytes;
    return run;
}

static inline Run run_of_codes(const uint8_t *text, int64_t *place, const uint32_t *characters, uint8_t *letters) {
    Run run = {0};
    for (;; *place += 4) {
        uint32_t code;
        memcpy(&code, text + *place, sizeof(code));
        uint32_t kept = characters[code];
        if (kept & INVISIBLE) continue;
        if (!kept || (kept & MARK && !run.characters)) break;
        int64_t first = run.bytes;
        code = kept & CODE;
        if (code < 0x80) {
            letters[run.bytes++] = (uint8_t)code;
        } else {
            if (code < 0x800) {
                letters[run.bytes++] = (uint8_t)(0xc0 | code >> 6);
            } else {
                if (code < 0x10000) {
                    letters[run.bytes++] = (uint8_t)(0xe0 | code >> 12);
                } else {
                    letters[run.bytes++] = (uint8_t)(0xf0 | code >> 18);
                    letters[run.bytes++] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
                }
                letters[run.bytes++] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
            }
            letters[run.bytes++] = (uint8_t)(0x80 | (code & 0x3f));
        }
        for (; first < run.bytes; first++) run.hash = hashed(run.hash, letters[first]);
        run.characters++;
    }
    *place += 4;
    return run;
}

/* Makes documents in UTF-32 that cannot be split here SPLIT; Python is to split them. Returns their number. */
EXPORTED int64_t leave_rare(int64_t documents, int64_t size, const uint32_t *characters, const int64_t *starts,
                            const uint8_t *text, uint8_t *kinds) {
    int64_t left = 0;
    for (int64_t d = 0; d < documents; d++)
        for (int64_t place = starts[d]; kinds[d] == UNICODE && place < starts[d + 1]; place += 4) {
            uint32_t code;
            memcpy(&code, text + place, sizeof(code));
            if (code < size && !(characters[code] & RARE)) continue;
            kinds[d] = SPLIT;
            left++;
        }
    return left;
}

/* Splits documents into words and counts them: of a document that is split, words of any length; of others, those of
 * `shortest` to `longest` letters, in lower case if asked.
 *
 * `ids` number the words in the order in which they come, `letters` are those of all of them, with a newline after each.
 * `ids` and `counts` have room for a word in every two bytes of the text, `letters` for all of it. Returns the number of
 * entries; `found` are the words and the bytes of their letters. */
EXPORTED int64_t count_words(int64_t documents, int64_t shortest, int64_t longest, int64_t lowercase,
                             const uint32_t *characters, const int64_t *starts, const uint8_t *text,
                             const uint8_t *kinds, int64_t *distinct, int32_t *ids, float *counts, uint8_t *letters,
                             int64_t *found) {
    uint8_t ascii[BYTES] = {0}, any[BYTES];
    for (int byte = 0; byte < BYTES; byte++) {
        any[byte] = byte == ' ' ? 0 : (uint8_t)byte;
        if (byte >= 'a' && byte <= 'z') ascii[byte] = (uint8_t)byte;
        if (byte >= 'A' && byte <= 'Z') ascii[byte] = (uint8_t)(lowercase ? byte - 'A' + 'a' : byte);
    }
    Table table = {0};
    int64_t entries = 0, used = 0;
    if (!grow(&table)) entries = NO_MEMORY;
    for (int64_t d = 0; d < documents && entries >= 0; d++) {
        const uint8_t *kept = kinds[d] == SPLIT ? any : ascii;
        int64_t low = kinds[d] == SPLIT ? 1 : shortest, high = kinds[d] == SPLIT ? INT64_MAX : longest, before = entries;
        for (int64_t place = starts[d]; place < starts[d + 1];) {
            Run run = kinds[d] == UNICODE ? run_of_codes(text, &place, characters, letters + used)
                                          : run_of_bytes(text, &place, kept, letters + used);
            if (run.characters < low || run.characters > high) continue;
            Word *word = find(&table, letters, used, run.bytes, run.hash ^ run.hash >> 29);
            if (!word) {
                entries = NO_MEMORY;
                break;
            }
            if (word->document < 0) {
                used += run.bytes;
                letters[used++] = '\n';
            }
            if (word->document != d) {
                word->document = d;
                word->entry = entries;
                ids[entries] = (int32_t)(word - table.words);
                counts[entries++] = 0;
            }
            counts[word->entry]++;
        }
        distinct[d] = entries - before;
    }
    found[0] = table.number;
    found[1] = used;
    free(table.words);
    free(table.slots);
    return entries;
}

/* Shellsort: documents are short */
static void sort(uint64_t *values, int64_t size) {
    static const int64_t gaps[] = {45101, 17701, 7001, 2801, 701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof(gaps) / sizeof(*gaps); g++)
        for (int64_t i = gaps[g]; i < size; i++) {
            uint64_t value = values[i];
            int64_t j = i;
            for (; j >= gaps[g] && values[j - gaps[g]] > value; j -= gaps[g]) values[j] = values[j - gaps[g]];
            values[j] = value;
        }
}

/* Gives every word its column, in place, and sorts the entries of each document by it; words without one (-1) go.
 * Returns the number of entries that are left. */
EXPORTED int64_t use_columns(int64_t documents, const int32_t *columns, int64_t *distinct, int32_t *ids, float *counts) {
    int64_t most = 0, kept = 0, entry = 0;
    for (int64_t d = 0; d < documents; d++)
        if (distinct[d] > most) most = distinct[d];
    uint64_t *pairs = malloc(sizeof(uint64_t) * (size_t)(most + 1));
    if (!pairs) return NO_MEMORY;
    for (int64_t d = 0; d < documents; d++) {
        int64_t number = 0;
        for (int64_t end = entry + distinct[d]; entry < end; entry++) {
            int32_t column = columns[ids[entry]];
            uint32_t bits;
            if (column < 0) continue;
            memcpy(&bits, counts + entry, sizeof(bits));
            pairs[number++] = (uint64_t)column << 32 | bits;
        }
        sort(pairs, number);
        for (int64_t i = 0; i < number; i++, kept++) {
            uint32_t bits = (uint32_t)pairs[i];
            ids[kept] = (int32_t)(pairs[i] >> 32);
            memcpy(counts + kept, &bits, sizeof(bits));
        }
        distinct[d] = number;
    }
    free(pairs);
    return kept;
}
