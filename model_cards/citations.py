"""Papers that several cards name, as BibTeX."""

TEMPORALWIKI = """\
@inproceedings{jang2022temporalwiki,
  title = {TemporalWiki: A Lifelong Benchmark for Training and Evaluating Ever-Evolving Language Models},
  author = {Jang, Joel and Ye, Seonghyeon and Lee, Changho and Yang, Sohee and Shin, Joongbo and Han, Janghoon
            and Kim, Gyeonghun and Seo, Minjoon},
  booktitle = {EMNLP},
  year = {2022}
}
"""
CKL = """\
@inproceedings{jang2022towards,
  title = {Towards Continual Knowledge Learning of Language Models},
  author = {Jang, Joel and Ye, Seonghyeon and Yang, Sohee and Shin, Joongbo and Han, Janghoon and Kim, Gyeonghun
            and Choi, Stanley Jungkyu and Seo, Minjoon},
  booktitle = {ICLR},
  year = {2022}
}
"""
