/* Machines written down as text, unfolded into a system root for the device tests:
 *
 *   mount TARGET FSTYPE SOURCE MAJ:MIN [root=DIR] [opts=TEXT]
 *   disk NAME MAJ:MIN PATH [ATTRIBUTE=VALUE]...   below sys/devices/PATH (or PATH/block)
 *   part NAME MAJ:MIN of DISK
 *   dm NAME MAJ:MIN DMNAME UUID [on DEVICE...]
 *   md NAME MAJ:MIN LEVEL [on DEVICE...]
 *   loop NAME MAJ:MIN FILE
 *   virtual NAME MAJ:MIN [on DEVICE...]           zram, bcache, drbd ...
 *   attr DEVICE ATTRIBUTE=VALUE                   one more of a device that is there
 *   driver PATH NAME                              of the controller sys/devices/PATH
 *   udev MAJ:MIN KEY=VALUE
 *   btrfs UUID DEVICE...
 *   file PATH [TEXT]    more PATH TEXT (appends)    hex PATH BYTES    link PATH TEXT
 *   expect PATH | TIER | mixed or - | STACK [| part of the note]
 *
 * Words are separated by blanks; "_" in a VALUE stands for a blank; lines of other words are
 * ignored. Nothing is ever made outside of the new directory, whatever the text says: it may come
 * from a fuzzer. */
#ifndef TESTS_SUPPORT_MACHINE_H
#define TESTS_SUPPORT_MACHINE_H

#include <stddef.h>

/* Makes a new directory below dir and returns its path (free() it after machine_remove), NULL when
 * it cannot. What of the text makes no sense is left out. */
char *machine_build(const char *dir, const char *text, size_t len);
void machine_remove(const char *root);

#endif
