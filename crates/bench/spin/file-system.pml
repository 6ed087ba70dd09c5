/* Twin of corpus/file-system: THREADS threads create a file each; a step is one access to a lock, an inode or a block. A
 * thread that is done waits forever, since SPIN would count its end as a step. A lock is one bit without its owner: the
 * position of a thread determines which locks it holds. */
#ifndef THREADS
#define THREADS 6
#endif
#define INODES 32
#define BLOCKS 26

bool inode_lock[INODES];
bool block_lock[BLOCKS];
byte inode[INODES];
bool busy[BLOCKS];

active [THREADS] proctype creator() {
    byte b = 0;
    d_step { !inode_lock[_pid % INODES] -> inode_lock[_pid % INODES] = true }
    if
    :: d_step { inode[_pid % INODES] == 0 -> b = ((_pid % INODES) * 2) % BLOCKS }
       do
       :: d_step { !block_lock[b] -> block_lock[b] = true }
          if
          :: d_step { busy[b] -> block_lock[b] = false; b = (b + 1) % BLOCKS }
          :: !busy[b] -> break
          fi
       od;
       busy[b] = true;
       inode[_pid % INODES] = b + 1;
       block_lock[b] = false
    :: inode[_pid % INODES] != 0
    fi
    inode_lock[_pid % INODES] = false;
end:
    false
}
