/* runpeak FILE COMMAND...: runs it, writes the peak of its resident memory in KiB to FILE, and ends as it ended. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage usage;
	int status = 0;
	FILE *out;
	pid_t pid;

	if (argc < 3) {
		(void)fputs("usage: runpeak FILE COMMAND...\n", stderr);
		return 125;
	}
	pid = fork();
	if (pid == 0) {
		(void)execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
		perror("runpeak");
		return 125;
	}
	out = fopen(argv[1], "we");
	if (!out || fprintf(out, "%ld\n", usage.ru_maxrss) < 0 || fclose(out) != 0) {
		perror(argv[1]);
		return 125;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
