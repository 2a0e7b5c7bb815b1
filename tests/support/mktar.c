/* Writes tar archives that no honest tool would: names, links, types and sizes as they are asked for.
 *
 *	mktar FILE ENTRY...
 *
 *	file NAME TEXT          a regular file
 *	mode OCTAL NAME TEXT    one with these permissions
 *	says SIZE NAME TEXT     one whose header declares SIZE bytes, whatever follows
 *	sparse SIZE NAME        one of SIZE bytes, all of them a hole (GNU)
 *	dir NAME | link NAME TEXT | hard NAME OTHER
 *	node TYPE NAME          TYPE as in the header: 3 character device, 4 block device, 6 FIFO
 *	noend                   no end mark */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *out;

static void die(const char *why)
{
	(void)fprintf(stderr, "mktar: %s\n", why);
	exit(1);
}

static void put_octal(char *at, size_t len, unsigned long long value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%0*llo", (int)len - 1, value);
	memcpy(at, text, len);
}

static void put_number(char *at, unsigned long long value)
{
	if (value < (1ULL << 33)) {
		put_octal(at, 12, value);
		return;
	}
	memset(at, 0, 12); /* GNU: base 256 */
	at[0] = (char)0x80;
	for (int i = 11; i > 3; i--, value >>= 8)
		at[i] = (char)(value & 0xff);
}

static void put_text(char *at, size_t len, const char *text)
{
	if (strlen(text) > len)
		die("a name is too long");
	memcpy(at, text, strlen(text));
}

static void put_block(const void *data, size_t len)
{
	char block[512] = { 0 };

	memcpy(block, data, len);
	if (fwrite(block, sizeof(block), 1, out) != 1)
		die("cannot write");
}

static void put_header(char type, const char *name, const char *link, unsigned mode,
                       unsigned long long size, unsigned long long sparse)
{
	char h[512] = { 0 };
	unsigned sum = 0;

	put_text(h, 100, name);
	put_octal(h + 100, 8, mode);
	put_octal(h + 108, 8, 0);
	put_octal(h + 116, 8, 0);
	put_number(h + 124, size);
	put_octal(h + 136, 12, 1000000000);
	memset(h + 148, ' ', 8);
	h[156] = type;
	put_text(h + 157, 100, link);
	if (type == 'S') {
		memcpy(h + 257, "ustar  ", 8);
		put_number(h + 386, sparse); /* one empty piece at its end */
		put_number(h + 398, 0);
		put_number(h + 483, sparse);
	} else {
		memcpy(h + 257, "ustar\00000", 8);
		put_octal(h + 329, 8, 1);
		put_octal(h + 337, 8, 3);
	}
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	put_octal(h + 148, 7, sum);
	put_block(h, sizeof(h));
}

static void put_data(const char *text)
{
	size_t len = strlen(text);

	for (size_t off = 0; off < len; off += 512)
		put_block(text + off, len - off < 512 ? len - off : 512);
}

/* One entry; returns how many arguments it was. */
static int put_entry(char **a, int n)
{
	if (n >= 3 && strcmp(a[0], "file") == 0) {
		put_header('0', a[1], "", 0644, strlen(a[2]), 0);
		put_data(a[2]);
		return 3;
	}
	if (n >= 4 && strcmp(a[0], "mode") == 0) {
		put_header('0', a[2], "", (unsigned)strtoul(a[1], NULL, 8), strlen(a[3]), 0);
		put_data(a[3]);
		return 4;
	}
	if (n >= 4 && strcmp(a[0], "says") == 0) {
		put_header('0', a[2], "", 0644, strtoull(a[1], NULL, 10), 0);
		put_data(a[3]);
		return 4;
	}
	if (n >= 3 && strcmp(a[0], "sparse") == 0) {
		put_header('S', a[2], "", 0644, 0, strtoull(a[1], NULL, 10));
		return 3;
	}
	if (n >= 2 && strcmp(a[0], "dir") == 0) {
		put_header('5', a[1], "", 0755, 0, 0);
		return 2;
	}
	if (n >= 3 && (strcmp(a[0], "link") == 0 || strcmp(a[0], "hard") == 0)) {
		put_header(a[0][0] == 'l' ? '2' : '1', a[1], a[2], 0777, 0, 0);
		return 3;
	}
	if (n >= 3 && strcmp(a[0], "node") == 0) {
		put_header(a[1][0], a[2], "", 0644, 0, 0);
		return 3;
	}
	die("what is this entry?");
	return n;
}

int main(int argc, char **argv)
{
	int end = 1;

	if (argc < 3)
		die("mktar FILE ENTRY...");
	out = fopen(argv[1], "wb");
	if (!out)
		die("cannot create the file");
	for (int i = 2; i < argc;) {
		if (strcmp(argv[i], "noend") == 0) {
			end = 0;
			i++;
		} else {
			i += put_entry(argv + i, argc - i);
		}
	}
	for (int i = 0; end && i < 2; i++)
		put_block("", 0);
	if (fclose(out) != 0)
		die("cannot write");
	return 0;
}
